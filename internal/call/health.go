package call

import (
	"strconv"
	"time"

	"github.com/toolgrant/toolgrant/internal/health"
)

// What tells how tools and servers do, see package health.
type (
	// Subject is a tool or an MCP server.
	Subject = health.Subject
	// Condition is how it does.
	Condition = health.Condition
)

// The states of a breaker.
const (
	Closed   = health.Closed
	Open     = health.Open
	HalfOpen = health.HalfOpen
)

// Health tells how a subject does.
type Health func(Subject) Condition

func (f *Facts) condition(s Subject) Condition {
	if f.Health == nil {
		return Condition{}
	}
	return f.Health(s)
}

// subjects are what must work for a call: the tool, and its server if it has one.
func (f *Facts) subjects(number uint) ([2]Subject, int) {
	subjects := [2]Subject{{Tool: f.Index.tools.Tool(number).ID}, {Server: f.Index.tools.Type(number).MCPServer}}
	if subjects[1].Server == "" {
		return subjects, 1
	}
	return subjects, 2
}

// healthy tells whether all breakers of a tool are closed.
func (f *Facts) healthy(number uint) bool {
	subjects, n := f.subjects(number)
	for _, s := range subjects[:n] {
		if f.condition(s).State != Closed {
			return false
		}
	}
	return true
}

// working refuses a tool whose breaker is open, or whose server's is.
func working(f *Facts, r *Request, c *candidate, a *Answer) bool {
	var retry time.Duration
	var open Subject
	subjects, n := f.subjects(c.number)
	for _, s := range subjects[:n] {
		switch condition := f.condition(s); condition.State {
		case Open:
			open, retry = s, max(retry, condition.RetryAfter, time.Second)
		case HalfOpen:
			a.Probes = append(a.Probes, s)
		}
	}
	if open == (Subject{}) {
		return true
	}
	a.Probes = nil
	t := c.tool(f.Index)
	english, chinese := title(t, "en"), title(t, "zh")
	if open.Server != "" {
		english, chinese = "The server of "+english, chinese+"的服务器"
	}
	seconds := strconv.Itoa(int((retry + time.Second - 1) / time.Second))
	a.refuse(ReasonUnhealthy, english+" does not answer at the moment. Please try again in "+seconds+" s.",
		chinese+"暂时没有响应。请在 "+seconds+" 秒后重试。")
	a.instead(f, r, c, retry)
	return false
}
