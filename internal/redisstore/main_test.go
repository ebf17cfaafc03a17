package redisstore

import (
	"testing"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
