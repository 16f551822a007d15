/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include <pthread.h>

bool nbc_threaded;
volatile sig_atomic_t nbc_report_asked;
void (*nbc_report)(void);
NBC_PER_THREAD unsigned char nbc_inside;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void nbc_lock_slow(void)
{
    pthread_mutex_lock(&mutex);
}

bool nbc_try_lock(void)
{
    return pthread_mutex_trylock(&mutex) == 0;
}

void nbc_unlock_slow(void)
{
    pthread_mutex_unlock(&mutex);
}
