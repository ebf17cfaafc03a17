package replica

// Settle waits until the cache has taken account of all that was put in.
func (r *Replica) Settle() { r.state.Load().facts.cache.CleanUp() }
