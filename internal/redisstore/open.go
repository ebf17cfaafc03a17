// Package redisstore keeps in Redis what the nodes of one database share besides it. PostgreSQL stays the
// truth: whatever is here may be lost. It carries wake-ups (Wakeups), and the counters of quotas (Ledger, which says
// how rules of all scopes are taken together, and Slices, which spends those of the whole system).
package redisstore

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/toolgrant/toolgrant/internal/redisurl"
)

const (
	dialTimeout  = 2 * time.Second
	writeTimeout = time.Second
	readTimeout  = 2 * time.Second

	// clusterAge is how old a client's idea of a Cluster may be. Nothing else tells it which replica took over from
	// a node that is no more.
	clusterAge = time.Second
	// A slot that moves refuses what has keys on both sides, for as long as that takes: so often and after so long
	// it is asked again, if the caller is as patient.
	clusterAttempts = 10
	clusterDelay    = 100 * time.Millisecond
)

// Open prepares a client of the Redis at an address as redisurl.Parse reads it. It does not connect: a Redis
// that is away is no reason not to serve.
//
// The client gives up soon and tries nothing twice, because a command that was not answered may have been
// executed: whoever may repeat a command does so itself. Only that of a Cluster asks again, when a connection
// broke, together with following slots that moved: go-redis does not offer one without the other. So whatever is
// sent to Redis must do no harm twice.
//
// Beside what Wakeups and Ledger need, a user of Redis's access control needs SELECT for a database that is not
// number 0, and CLUSTER SLOTS and ASKING in a Cluster. A user of Sentinels, if they have any, needs SENTINEL
// GET-MASTER-ADDR-BY-NAME and SENTINELS, PING, SUBSCRIBE and all channels.
func Open(url string) (redis.UniversalClient, error) {
	address, err := redisurl.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("address of Redis: %w", err)
	}
	// go-redis would write a line to stderr for every connection that fails.
	logging.Disable()
	options := &redis.UniversalOptions{
		Addrs:                 address.Hosts,
		Username:              address.Username,
		Password:              address.Password,
		DB:                    address.Database,
		MasterName:            address.Master,
		SentinelUsername:      address.SentinelUsername,
		SentinelPassword:      address.SentinelPassword,
		DialTimeout:           dialTimeout,
		DialerRetries:         1, // attempts
		ReadTimeout:           readTimeout,
		WriteTimeout:          writeTimeout,
		ContextTimeoutEnabled: true,
		MaxRetries:            -1,
		// Asks a Redis of Redis Inc. to announce maintenance, which others know nothing of.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if address.TLS {
		// go-redis checks each node's certificate against the name that it dials.
		options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	switch address.Kind {
	case redisurl.Sentinel:
		return redis.NewFailoverClient(options.Failover()), nil
	case redisurl.Cluster:
		cluster := options.Cluster()
		cluster.ClusterStateReloadInterval = clusterAge
		cluster.MaxRedirects, cluster.MaxRetryBackoff = clusterAttempts, clusterDelay
		return redis.NewClusterClient(cluster), nil
	default:
		return redis.NewClient(options.Simple()), nil
	}
}
