package call

import (
	"strconv"
	"time"
)

// Exhausted makes the refusal of a call that nothing but its quotas stood against. After the wait it may be tried
// again; zero: that would not help, since it asks for more than a limit.
func (f *Facts) Exhausted(r *Request, a *Answer, wait time.Duration) {
	english, chinese := a.titles(f)
	if wait == 0 {
		a.refuse(ReasonQuotaExhausted, "This call asks for more than a quota of "+english+" allows.", "此调用超出了"+chinese+"的配额上限。")
	} else {
		seconds := strconv.Itoa(int((wait + time.Second - 1) / time.Second))
		a.refuse(ReasonQuotaExhausted, "A quota of "+english+" is used up. Please try again in "+seconds+" s.",
			chinese+"的配额已用完。请在 "+seconds+" 秒后重试。")
	}
	a.uncounted(f, r, wait)
}

// Uncountable makes the refusal of a call whose quotas cannot be counted now.
func (f *Facts) Uncountable(r *Request, a *Answer) {
	const retry = time.Second
	english, chinese := a.titles(f)
	a.refuse(ReasonQuotaUnavailable, "How often "+english+" was used cannot be counted at the moment. Please try again.",
		"暂时无法统计"+chinese+"的使用次数。请稍后重试。")
	a.uncounted(f, r, retry)
}

func (a *Answer) uncounted(f *Facts, r *Request, retry time.Duration) {
	a.Binding, a.Probes = Binding{}, nil
	a.instead(f, r, a.candidate, retry)
}

func (a *Answer) titles(f *Facts) (english, chinese string) {
	t := a.candidate.tool(f.Index)
	return title(t, "en"), title(t, "zh")
}
