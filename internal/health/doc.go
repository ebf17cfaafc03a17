// Package health decides which tools and MCP servers are put aside because they fail.
//
// A Record is what is known of one subject, a tool or a server. It is a value: reports and claims make a new one of
// it, at a time and with chance that are passed in, so all rules can be tried without a clock.
//
//	         fail_threshold transport failures in a row
//	closed ──────────────────────────────────────────────▶ open ◀───────────┐
//	  ▲                                                      │ cool-down     │ the probe failed: the
//	  │                                                      ▼ is over       │ next one is twice as long
//	  └──────────────────────────────────────────────── half open ──────────┘
//	     the probe was answered                        one call is let through
//
// A Board has the records of all subjects, in memory. Nodes of one database have theirs in common, through a Shared:
// see Board.
//
// # What counts
//
//	            score          failures in a row   a probe that ends so
//	SUCCESS     rises          none                closes the breaker
//	ERROR       falls          none                closes the breaker: the tool did answer
//	TIMEOUT     falls          one more            opens it again
//	UNREACHABLE falls          one more            opens it again
//	CANCELLED, BAD_ARGUMENTS   nothing             makes way for another probe
//
// While a breaker is not closed, only the probe's report moves it. Others are of calls that began before, and lower or
// raise the score.
//
// Failures are counted in a row, not in a window of time, because that is what needs no setting for how often a tool is
// called: a tool that is called once an hour is put aside after as many failures as one that is called a thousand
// times a second, and one that answers now and then never is. That is what the score shows.
package health
