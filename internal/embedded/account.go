package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating-system user that PostgreSQL runs as. PostgreSQL
// refuses to run as root, so root becomes somebody else; anybody else runs it
// as themselves.
type account struct {
	name     string
	uid, gid int
	switched bool // we are root and the account is not ours
}

// pickAccount chooses the account for the given cluster, which may not exist.
func pickAccount(cluster string) (account, error) {
	if os.Geteuid() != 0 {
		self := account{name: "uid " + strconv.Itoa(os.Geteuid()), uid: os.Geteuid(), gid: os.Getegid()}
		if u, err := user.Current(); err == nil {
			self.name = u.Username
		}
		return self, nil
	}

	// An existing cluster keeps its owner, so that running Toolgrant with sudo
	// once, or installing the user "postgres" later, takes nothing away from
	// whoever created it.
	if owner, ok := ownerOf(cluster); ok && owner.uid != 0 {
		return owner, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return accountOf(u)
		}
	}
	return account{}, errors.New("PostgreSQL refuses to run as root, and this machine has neither a user " +
		`"postgres" nor a user "nobody" to run it as: run Toolgrant as another user`)
}

func ownerOf(path string) (account, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return account{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return account{}, false
	}
	if u, err := user.LookupId(strconv.Itoa(int(stat.Uid))); err == nil {
		if owner, err := accountOf(u); err == nil {
			return owner, true
		}
	}
	return account{
		name: "uid " + strconv.Itoa(int(stat.Uid)),
		uid:  int(stat.Uid), gid: int(stat.Gid), switched: true,
	}, true
}

func accountOf(u *user.User) (account, error) {
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return account{}, fmt.Errorf("user %s has the unusable number %q", u.Username, u.Uid)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return account{}, fmt.Errorf("user %s has the unusable group number %q", u.Username, u.Gid)
	}
	return account{name: u.Username, uid: uid, gid: gid, switched: true}, nil
}

// apply makes cmd run as the account, away from our working directory (which
// the account may not be allowed to enter), from our terminal and from our
// environment.
func (a account) apply(cmd *exec.Cmd) {
	cmd.Dir = "/"
	cmd.Env = childEnvironment()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		// Ctrl-C goes to the whole foreground process group: Toolgrant must
		// get it alone, to finish its requests before PostgreSQL goes.
		Setpgid: true,
	}
	if a.switched {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}

// childEnvironment passes on only what finding libraries and temporary files
// needs. Our environment may hold secrets that the account must not read, and
// variables (PGDATA, PGPORT, LC_ALL, NOTIFY_SOCKET) that mislead PostgreSQL.
func childEnvironment() []string {
	env := []string{"LC_ALL=C"}
	for _, name := range []string{"PATH", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// own gives path to the account.
func (a account) own(path string) error {
	if !a.switched {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// ownAll gives the tree below root to the account. Symbolic links are changed,
// not followed.
func (a account) ownAll(root string) error {
	if !a.switched {
		return nil
	}
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return a.own(path)
	})
}

// mayEnter tells whether the account may pass through the directory. It looks
// at the permission bits, and so does not know of access control lists.
func (a account) mayEnter(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	switch mode := info.Mode().Perm(); {
	case int(stat.Uid) == a.uid:
		return mode&0o100 != 0
	case int(stat.Gid) == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// closedAncestor returns the first directory above dir, or dir itself, that the
// account may not pass through; "" if it can reach dir.
func (a account) closedAncestor(dir string) (string, error) {
	if !a.switched {
		return "", nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if closed, err := a.closedAncestor(parent); closed != "" || err != nil {
			return closed, err
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !a.mayEnter(info) {
		return dir, nil
	}
	return "", nil
}
