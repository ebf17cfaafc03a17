package health

import (
	"context"
	"time"
)

// Version numbers the writes of a Shared: a later one is greater. 0: there was none.
type Version int64

// Stored is a record as a Shared has it.
type Stored struct {
	Subject Subject
	Version Version // of its last write
	Record  Record
}

// Offer is a record to be written if its subject still has that version.
type Offer struct {
	Stored
	// Mark tells offers apart. One whose fate is not known is repeated as it is, and then taken at most once.
	Mark string
}

// Exchange is what a node has to say, and where it stopped listening.
type Exchange struct {
	Epoch  string  // of the answer before; empty: tell all
	Since  Version // of the answer before
	Offers []Offer
}

// News is what a Shared answers.
type News struct {
	// Now is its clock, which counts for all nodes.
	Now time.Time
	// Epoch changes when it lost what it had. Then, and when the node knew no epoch, no offer was taken, and Changed is all there is.
	Epoch string
	// Version is the last write.
	Version Version
	// Taken are the versions of the offers, in their order; 0: somebody else wrote in between.
	Taken []Version
	// Changed are the records that others wrote since, and those of offers that were not taken; Version is 0 where there is none.
	Changed []Stored
}

// Shared is where nodes have their records in common.
type Shared interface {
	// Exchange takes offers and tells what is new, all in one step. It returns within a time of its own, also if nobody
	// answers. It may then have taken the offers.
	Exchange(context.Context, Exchange) (News, error)
}
