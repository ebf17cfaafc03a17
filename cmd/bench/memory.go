package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// resident returns how much of the machine's memory processes take together, in bytes: what Linux tells of
// them in /proc. It is 0 of no processes.
func resident(pids ...int) (int64, error) {
	var all int64
	for _, pid := range pids {
		one, err := residentOf(pid)
		if err != nil {
			return 0, err
		}
		all += one
	}
	return all, nil
}

func residentOf(pid int) (int64, error) {
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("--server-pid: %w", err)
	}
	defer status.Close()
	lines := bufio.NewScanner(status)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("--server-pid: %d has no memory of its own", pid)
}

// mebibytes is nothing for nothing, which is what is not known.
func mebibytes(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20))
}
