package hilt

// What has to be done one after the other: events, the keys of a panel, what is published on a topic.

import (
	"sync"
	"time"

	"hilt-sdk/internal/quiet"
)

// lane does one thing after the other, in order.
type lane struct {
	mu    sync.Mutex
	queue []func()
	busy  bool
}

// laneLength is how much may wait in a lane; the oldest is dropped for what is beyond.
const laneLength = 10_000

func (l *lane) do(c *connection, work func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.queued.change(1)
	if l.queue = append(l.queue, work); len(l.queue) > laneLength {
		l.queue = l.queue[1:]
		c.queued.change(-1)
		c.grumble("lane", "events come faster than they are handled: the oldest are dropped")
	}
	if l.busy {
		return
	}
	l.busy = true
	c.work.change(1)
	go func() {
		defer c.work.change(-1)
		for {
			l.mu.Lock()
			if len(l.queue) == 0 {
				l.busy = false
				l.mu.Unlock()
				return
			}
			next := l.queue[0]
			l.queue = l.queue[1:]
			l.mu.Unlock()
			next()
			c.queued.change(-1)
		}
	}()
}

func init() {
	quiet.Wait = func(extension any, within time.Duration) bool {
		e, _ := extension.(*Extension)
		e.mu.Lock()
		c := e.conn
		e.mu.Unlock()
		return c == nil || c.queued.gone(within)
	}
}

// crew is a number of things under way, which somebody may wait for to be none. Unlike a sync.WaitGroup it may grow again
// while somebody waits.
type crew struct {
	mu    sync.Mutex
	size  int
	empty *sync.Cond
}

func newCrew() *crew {
	c := &crew{}
	c.empty = sync.NewCond(&c.mu)
	return c
}

func (c *crew) change(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size += by; c.size == 0 {
		c.empty.Broadcast()
	}
}

// gone waits until there is nothing, and tells whether that came in time.
func (c *crew) gone(within time.Duration) bool {
	late := false
	timer := time.AfterFunc(within, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		late = true
		c.empty.Broadcast()
	})
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.size > 0 && !late {
		c.empty.Wait()
	}
	return c.size == 0
}
