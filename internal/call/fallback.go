package call

import (
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// maxChain is how many tools a chain of fallbacks is followed through.
const maxChain = 64

// chain follows the fallbacks of a tool, those of the tool itself before those of its fallbacks. Each is named once,
// and the tool itself never.
func (x *Index) chain(number uint) []uint {
	var chain []uint
	next := func(n uint) {
		for _, name := range x.tools.Tool(n).Capability.Fallback {
			if m, ok := x.tools.Number(name); ok && m != number && !slices.Contains(chain, m) && len(chain) < maxChain {
				chain = append(chain, m)
			}
		}
	}
	next(number)
	for i := 0; i < len(chain); i++ {
		next(chain[i])
	}
	return chain
}

// fallback are the tools of a chain that could be used now, and their functions: effective, with all that they require,
// healthy, and not riskier than the call, unless a person approved that. A tool that cannot be used does not end the
// chain.
func (f *Facts) fallback(r *Request, c *candidate) (tools []id.Tool, functions []string) {
	for _, n := range c.compiled(f.Index).fallback {
		if !f.Answer.Effective.Test(n) || !f.ready(r, n) || !f.healthy(n) {
			continue
		}
		if fit := f.fit(r, n, c.function); len(fit) > 0 {
			tools, functions = append(tools, f.Index.tools.Tool(n).ID), append(functions, fit...)
		}
	}
	return tools, functions
}

// fit are the functions of a tool that may stand in for another one: that of the same name, if the tool's server has
// one, else all that are not riskier.
func (f *Facts) fit(r *Request, number uint, instead *function) []string {
	var fit []string
	tool := f.Index.tools.Tool(number)
	for i := range f.Index.compiled[number].functions {
		one := &f.Index.compiled[number].functions[i]
		if level(one.risk) > level(instead.risk) && !f.approved(r, tool, one) {
			continue
		}
		if one.name == instead.name {
			return []string{one.unique}
		}
		fit = append(fit, one.unique)
	}
	return fit
}

// approved tells whether a call of the function, other than the one that was asked about, would be approved.
func (f *Facts) approved(r *Request, tool *catalog.Tool, one *function) bool {
	_, grant := f.approvals(&Request{Chat: r.Chat}, tool.ID, one.name)
	return grant != nil
}

// instead makes the next step of a refusal a fallback, if there is one, else to try again after a time, if that is
// not zero.
func (a *Answer) instead(f *Facts, r *Request, c *candidate, retry time.Duration) {
	if a.Fallback, a.Next.Fallback = f.fallback(r, c); a.Fallback == nil {
		a.Next.RetryAfter = retry
	}
}
