// Package quiet lets the host in memory wait until an extension has dealt with all that it was told.
package quiet

import "time"

// Wait tells whether an extension came to rest within a time. The extension's own package fills it in.
var Wait func(extension any, within time.Duration) bool
