package embedded

import "fmt"

// sharedBuffers is PostgreSQL's own cache of pages: a quarter of the memory, as its documentation advises, from its
// default to what is enough for a million users and chats. It takes what is used of it.
func sharedBuffers(memory uint64) string {
	const least, most = 128 << 20, 1 << 30
	return fmt.Sprintf("%dMB", min(most, max(least, memory/4))>>20)
}
