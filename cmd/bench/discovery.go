package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolgrant/toolgrant/internal/discovery"
)

// What discovery reports.
const (
	aboutRanking   = "ranking"
	aboutLearning  = "learning"
	aboutSplits    = "splits"
	aboutThreshold = "threshold"
	aboutTokens    = "tokens"
)

// finding is the settings of discovery.
type finding struct {
	data, about, output string
	sets, weights       []string
}

func discoveryCommand() *cobra.Command {
	c := &finding{}
	command := &cobra.Command{
		Use:   "discovery",
		Short: "Measure how well and how fast tools are found, on sets of tools and requests",
		Long: "Measure how well and how fast tools are found, in the process, on sets of tools and requests.\n\n" +
			"A set is a folder with tools.jsonl ({\"name\", \"description\", \"parameters\": {name: description}, \"server\", " +
			"\"server_description\", \"category\"}, one a line) and one or more files queries*.jsonl ({\"query\", \"relevant\": [names]}).\n\n" +
			"--about ranking: with the right tool among the first one, three and five, nDCG@10 and time, for plain BM25 over all text of a " +
			"tool, for the ranking without use (cold), and with use (learned: the queries are split in five parts, each is asked with the " +
			"others as past requests).\n" +
			"--about learning: how many past requests of a tool it takes, what wrong labels cost, and what becomes of tools without history.\n" +
			"--about splits: the same, and with use, in eight random splits: what the figures of one split are worth.\n" +
			"--about threshold: how many queries are told that nothing fits, and how many unrelated requests.\n" +
			"--about tokens: of the schemas of all tools, beside those of the tools that are found.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			weights, err := c.validate()
			if err != nil {
				return err
			}
			return c.run(command.OutOrStdout(), weights)
		},
	}
	f := command.Flags()
	f.StringVar(&c.data, "data", "", "the directory with the sets (required)")
	f.StringSliceVar(&c.sets, "sets", nil, "only these folders or sets")
	f.StringVar(&c.about, "about", aboutRanking, "ranking, learning, splits, threshold or tokens")
	f.StringArrayVar(&c.weights, "weight", nil, "a weight in place of its default, as learned.back_off=4; may be repeated")
	f.StringVarP(&c.output, "output", "o", outputTable, outputUsage)
	return command
}

// validate names every fault.
func (c *finding) validate() (discovery.Weights, error) {
	weights := discovery.DefaultWeights()
	faults := []error{checkOutput(c.output)}
	if c.data == "" {
		faults = append(faults, errors.New("--data: must be given"))
	}
	if !slices.Contains([]string{aboutRanking, aboutLearning, aboutSplits, aboutThreshold, aboutTokens}, c.about) {
		faults = append(faults, fmt.Errorf("--about: must be ranking, learning, splits, threshold or tokens, not %q", c.about))
	}
	for _, one := range c.weights {
		faults = append(faults, setWeight(&weights, one))
	}
	if err := weights.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("--weight: %w", err))
	}
	return weights, errors.Join(faults...)
}

func setWeight(weights *discovery.Weights, setting string) error {
	name, text, _ := strings.Cut(setting, "=")
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("--weight: must be name=number, not %q", setting)
	}
	all := weights.All()
	i := slices.IndexFunc(all, func(w discovery.Weight) bool { return w.Name == name })
	if i < 0 {
		return fmt.Errorf("--weight: no weight is named %q", name)
	}
	all[i].Set(value)
	return nil
}

func (c *finding) run(out io.Writer, weights discovery.Weights) error {
	sets, err := readSets(c.data, c.sets)
	if err != nil {
		return err
	}
	switch c.about {
	case aboutLearning:
		return learningReport(sets, weights).print(out, c.output)
	case aboutSplits:
		return splitsReport(sets, weights).print(out, c.output)
	case aboutThreshold:
		return thresholdReport(sets, weights).print(out, c.output)
	case aboutTokens:
		report, err := tokensReport(sets, weights)
		if err != nil {
			return err
		}
		return report.print(out, c.output)
	default:
		return rankingReport(sets, weights).print(out, c.output)
	}
}
