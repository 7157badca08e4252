// SPDX-License-Identifier: Apache-2.0
// A library with a thread of its own that holds an array by DLPack and lets go of it when it is told to. It knows
// nothing of Python, and so asks it for nothing.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct Managed {  // as DLPack has it before its version 1
  struct {
    void* data;
    int32_t device_type, device_id, dimensions;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t offset;
  } tensor;
  void* context;
  void (*deleter)(struct Managed*);
} Managed;

static Managed* held;
static sem_t asked, gone;

static void* run(void* unused) {
  (void)unused;
  while (sem_wait(&asked) != 0) continue;
  held->deleter(held);
  sem_post(&gone);
  return 0;
}

int hold(Managed* managed) {
  pthread_t thread;
  held = managed;
  sem_init(&asked, 0, 0);
  sem_init(&gone, 0, 0);
  return pthread_create(&thread, 0, run, 0) || pthread_detach(thread);
}

// 0: the thread has let go of it. 1: it does not come back from that.
int let_go(int most_s) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += most_s;
  sem_post(&asked);
  while (sem_timedwait(&gone, &until) != 0)
    if (errno == ETIMEDOUT) return 1;
  return 0;
}

static int most_s_at_end;

static void at_end(void) {
  if (let_go(most_s_at_end)) _exit(77);
}

// Once Python has ended, where the process itself ends.
void let_go_at_end(int most_s) {
  most_s_at_end = most_s;
  atexit(at_end);
}
