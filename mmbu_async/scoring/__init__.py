"""Pure functions from texts to answers, boxes, options and labels, and the IoU kernel. No asyncio, no I/O."""
