package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// readyCommand asks a server that runs here, for containers that have no other program to do so.
func readyCommand(load loader) *cobra.Command {
	var address string
	command := &cobra.Command{
		Use:   "ready",
		Short: "Ask the server that runs with these settings whether it is ready, and exit; with status 1 if it is not",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if address == "" {
				c, err := load()
				if err != nil {
					return err
				}
				address = "http://" + here(c.HTTPAddr)
			}
			return askReady(command.Context(), strings.TrimSuffix(address, "/")+"/readyz")
		},
	}
	command.Flags().StringVar(&address, "url", "", "where it serves HTTP, such as https://name:7701; default: http, at http_addr of this machine")
	return command
}

// here is an address of this machine for one that means all of its addresses.
func here(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

func askReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1024))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", strings.TrimSpace(string(text)))
	}
	return nil
}
