//go:build !linux

package embedded

const kernelEndsChildren = false
