// Package routing decides by which strategy a user's requests in words are answered, and runs another one in the shadow.
package routing
