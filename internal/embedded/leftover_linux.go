package embedded

import (
	"os"
	"strconv"
	"strings"
)

// isPostmasterOf tells whether the process is the cluster's postmaster. A
// process that ended but was not yet collected by its parent has no command
// line, and so counts as gone.
func isPostmasterOf(pid int, cluster string) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return false
	}
	return servesCluster(strings.Split(string(text), "\x00"), cluster)
}
