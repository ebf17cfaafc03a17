//go:build !linux

package embedded

import (
	"os/exec"
	"strconv"
	"strings"
)

// isPostmasterOf tells whether the process is the cluster's postmaster. ps
// joins the arguments with spaces, so a cluster's path may span several.
func isPostmasterOf(pid int, cluster string) bool {
	output, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return false
	}
	program, rest, found := strings.Cut(string(output), " -D "+cluster+" ")
	return found && rest != "" && servesCluster([]string{program, "-D", cluster}, cluster)
}
