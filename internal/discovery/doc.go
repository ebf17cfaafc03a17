// Package discovery finds the tools that a request in words needs, among thousands, in memory and without a
// model. It decides and does no I/O.
//
//	Tool ──analyze──► document ──Index.With──► Index ─┐
//	                                                  ├─► Ranker ──Search──► Result
//	Request (features, tools) ──NewHistory──► History ┘
//
// An [Index] holds the words and character n-grams of tools, a [History] what past requests turned out to
// need. A [Ranker] puts both together. All three never change once they are made, so any number of searches
// may run on them while others are made: a change of a tool makes a new Index that shares with the old one
// all but the lists of that tool's words.
//
// docs/discovery.md tells how the ranking works, and what each part is worth.
package discovery
