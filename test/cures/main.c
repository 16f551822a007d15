/* SPDX-License-Identifier: MIT */
#include "cures.h"

int main(int argc, char **argv)
{
    return test_main(argc, argv, NULL, NULL);
}
