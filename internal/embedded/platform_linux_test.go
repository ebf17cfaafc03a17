package embedded

const kernelEndsChildren = true
