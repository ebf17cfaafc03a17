package embedded

import "golang.org/x/sys/unix"

// memory is how much the machine has, in bytes; 0: unknown.
func memory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}
