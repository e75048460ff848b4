# The reader waits for a provider; the simulator takes no time.
export MMBU_BATCH_POLL=0.5
