package call

// Decide decides whether a call may be made. The first stage that refuses answers.
func Decide(f *Facts, r *Request) Answer {
	var a Answer
	c, ok := source(f, r, &a)
	if !ok {
		return a
	}
	a.candidate = c
	a.Tool, a.Function, a.Risk = c.tool(f.Index).ID, c.function.name, c.function.risk
	switch {
	case !given(f, r, c, &a):
	case !precondition(f, r, c, &a):
	case !fitting(f, r, c, &a):
	case !harmless(f, r, c, &a):
	case !working(f, r, c, &a):
	default:
		a.Decision = Allow
		a.Binding = c.binding(f.Index)
		a.Fallback, _ = f.fallback(r, c)
	}
	return a
}
