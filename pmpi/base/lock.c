/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

bool nbc_threaded;
pthread_mutex_t nbc_mutex = PTHREAD_MUTEX_INITIALIZER;
volatile sig_atomic_t nbc_report_asked;
void (*nbc_report)(void);
NBC_PER_THREAD unsigned char nbc_inside;
