/* SPDX-License-Identifier: MIT */
/* Memory of a device, for the buffers of calls: by the look-alikes of test/device, or by the real
 * runtimes. NBC_DEVICE_LIBRARY is the runtime of the tests, by default the look-alike of CUDA's;
 * nbcbench names its own. */
#ifndef NBC_TEST_DEVICE_H
#define NBC_TEST_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

enum device_memory { ON_HOST, ON_DEVICE, MANAGED };

/* Loads this runtime, unless one has been loaded. Returns whether there is one with a device. */
bool device_load(const char *library);

/* Loads that of the tests, before the first use. */
void device_load_tested(void);

/* Memory of one of the devices: three times of each in turn, or of number n, modulo their number,
 * after device_choose(n). No context is current before or after. */
void device_choose(int n);
void *device_new(enum device_memory kind, size_t size);
void device_free(void *memory);

void device_store(void *device, const void *host, size_t size);
void device_fetch(void *host, const void *device, size_t size);

void device_name(char *text, int size); /* of the chosen one */
bool device_is_look_alike(void);

/* Make memory of the host faster for copies, and undo that. */
bool device_pin(void *memory, size_t size);
void device_unpin(void *memory);

/* A function of the runtime; NULL if it has none of that name. */
void *device_function(const char *name);

#endif
