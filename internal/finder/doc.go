// Package finder decides what SearchTools finds, which names EnableTools turns on, and what of a large effective set
// ResolveTools keeps for a query. It joins the ranking of [discovery] with what is available to a user, what tools
// require, and how they do. It does no I/O.
//
//	World ──Shelf.Of──► View (indexes of one catalogue) ──Find, Narrow, Enable──► answers
//
// Shared tools are in one index, each user's private tools in one of that user's own, which is made when the user first
// searches and which no other user's search is given.
package finder
