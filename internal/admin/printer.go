package admin

import (
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// printer words the JSON Schema library's faults in English.
var printer = message.NewPrinter(language.English)
