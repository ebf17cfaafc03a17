package discovery

import "strings"

// spellings gives words the one that stands for them where tools are searched: what no stemmer knows. Identifiers shorten
// what requests write out (getInfo and information, exec and execute); verbs are irregular, and nouns made of them are
// written otherwise (convert and conversion); and there is British and American English. Of short forms only those are
// here that hardly stand for anything else: "temp" and "min" do.
//
// Past requests are compared as they were written: whether one says info or information tells them apart.
var spellings = spellingTable(`
	accounts acct
	address addr
	advertisement ad ads
	amount amt
	application app apps
	average avg
	calculate calc
	command cmd
	configuration config cfg conf
	control ctrl
	coordinates coords
	database db
	destination dest
	directory dir
	document doc docs
	environment env
	execute exec
	favorite fav favourite
	frequency freq
	generate gen
	image img
	index idx
	information info
	language lang
	latitude lat
	length len
	library lib
	location loc
	longitude lon lng
	management mgmt
	mathematics math maths
	maximum max
	message msg
	object obj
	organization org organisation
	package pkg
	parameter param params
	password pwd
	picture pic pics
	previous prev
	quantity qty
	reference ref
	repository repo repos
	request req
	response resp
	source src
	statistics stat stats
	synchronize sync
	television tv
	temporary tmp
	timezone tz
	transaction txn
	value val
	variable var
	version ver
	video vid
	volume vol
	analyze analyse
	begin began begun
	break broke broken
	bring brought
	build built
	buy bought
	catch caught
	child children
	choose chose chosen
	convert conversion conversions
	draw drew drawn
	drive drove driven
	eat ate eaten
	fly flew flown
	foot feet
	forget forgot forgotten
	grow grew grown
	hold held
	hide hid hidden
	identify identification
	keep kept
	lose lost
	maintain maintenance
	make made
	man men
	modify modification modifications
	multiply multiplication
	mouse mice
	notify notification notifications
	pay paid
	person people
	pronounce pronunciation
	ride rode ridden
	ring rang rung
	sell sold
	send sent
	sing sang sung
	solve solution solutions
	speak spoke spoken
	spend spent
	subscribe subscription subscriptions
	take took taken
	teach taught
	tooth teeth
	verify verification verifications
	classify classification
	win won
	woman women
	write wrote written
	describe description desc
	compare comparison comparisons
	register registration
	catalog catalogue
	center centre
	color colour
	flavor flavour
	gray grey
	jewelry jewellery
	license licence
	liter litre
	meter metre
	neighbor neighbour
	program programme
	theater theatre
`)

// spellingTable gives each further word of a line the first one.
func spellingTable(lines string) map[string]string {
	table := map[string]string{}
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		for _, other := range words[min(1, len(words)):] {
			table[other] = words[0]
		}
	}
	return table
}
