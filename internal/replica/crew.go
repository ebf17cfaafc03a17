package replica

import "time"

// idle is how long a goroutine of a crew waits for its next task.
const idle = 10 * time.Second

// crew runs tasks on goroutines that it keeps for a while: on its way to the database, a new one would grow its stack
// anew for each task, which costs more than all else about it.
type crew chan func()

// run starts a task at once.
func (c crew) run(task func()) {
	select {
	case c <- task: // somebody is idle
	default:
		go c.work(task)
	}
}

func (c crew) work(task func()) {
	for {
		task()
		select {
		case task = <-c:
		case <-time.After(idle):
			return
		}
	}
}
