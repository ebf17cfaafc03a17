package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxLog is the size from which PostgreSQL's log is moved aside when the
	// server starts. One older log is kept. A running server's log is not cut:
	// PostgreSQL writes little to it unless something is wrong.
	maxLog = 10 << 20

	// maxLogTail is how much of the log an error message quotes.
	maxLogTail = 2 << 10
)

func (p *Postgres) logPath() string { return filepath.Join(p.dataDir, "postgres.log") }

// openLog opens the log for the next server and tells where in it that server's
// own lines will begin.
func (p *Postgres) openLog() (*os.File, int64, error) {
	path := p.logPath()
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, 0, fmt.Errorf("PostgreSQL's log: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("PostgreSQL's log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("PostgreSQL's log: %w", err), file.Close())
	}
	return file, info.Size(), nil
}

// logSince returns the end of what was logged from the given offset on.
func (p *Postgres) logSince(offset int64) string {
	file, err := os.Open(p.logPath())
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	offset = max(offset, info.Size()-maxLogTail)
	text, err := io.ReadAll(io.NewSectionReader(file, offset, maxLogTail))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
