package finder

// Suggestion says what to do when nothing fits, in English and in Chinese.
func (r *Result) Suggestion() (english, chinese string) {
	switch {
	case r.Fits:
		return "", ""
	case r.Candidates == 0:
		return "The user has no tools here that could be found. Answer without a tool, or say that it cannot be done here.",
			"用户在此处没有可查找的工具。请不使用工具直接回答，或说明此处无法完成。"
	default:
		return "No tool fits this request. Ask the user what exactly is to be done, or search again in other words: one step at a time, naming what is done and to what.",
			"没有合适的工具。请询问用户具体要做什么，或换一种说法重新搜索：每次一个步骤，说明要做什么、对象是什么。"
	}
}

// SearchOff says what to do where nothing is searched, because of the user's routing mode, in English and in Chinese.
func SearchOff() (english, chinese string) {
	return "Search is off here: the tools that you were told of are all that are on. Use one of them, or answer without a tool.",
		"此处未启用搜索：已告知你的就是全部已启用的工具。请使用其中之一，或不使用工具直接回答。"
}
