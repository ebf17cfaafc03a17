package telemetry

import "github.com/prometheus/client_golang/prometheus"

// reading is a metric that is read off an S: what somebody else counts already is not counted again.
type reading[S any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(S) float64
}

func gauge[S any](name, help string, of func(S) float64) reading[S] {
	return reading[S]{prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, nil, nil), prometheus.GaugeValue, of}
}

func counter[S any](name, help string, of func(S) float64) reading[S] {
	return reading[S]{prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, nil, nil), prometheus.CounterValue, of}
}

// labelled is one series of a metric that has several.
func labelled[S any](name, help string, labels prometheus.Labels, kind prometheus.ValueType, of func(S) float64) reading[S] {
	return reading[S]{prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, nil, labels), kind, of}
}

// readings is a collector that takes one S per scrape, so that its metrics fit each other.
type readings[S any] struct {
	take func() S
	all  []reading[S]
}

// Describe implements prometheus.Collector.
func (r readings[S]) Describe(out chan<- *prometheus.Desc) {
	for _, one := range r.all {
		out <- one.desc
	}
}

// Collect implements prometheus.Collector.
func (r readings[S]) Collect(out chan<- prometheus.Metric) {
	taken := r.take()
	for _, one := range r.all {
		out <- prometheus.MustNewConstMetric(one.desc, one.kind, one.of(taken))
	}
}
