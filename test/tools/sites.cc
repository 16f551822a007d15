/* SPDX-License-Identifier: MIT */
/* Collectives from places whose names are known: from two methods with long names that differ at the
 * end, which call a wrapper of MPI, from a function that calls it twice, and from one that the linker
 * does not know once the program is stripped: it lies behind one that it knows. */
#include <mpi.h>

#define APART __attribute__((noinline, noclone))

int one = 1, sum;

extern "C" APART void wrapper_of_allreduce(int count);
extern "C" APART void known_before(void);
extern "C" APART void calls_twice(void);

APART void wrapper_of_allreduce(int count)
{
    MPI_Allreduce(&one, &sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    sum = 0;
}

namespace a_namespace_with_a_name_that_has_very_many_letters {
namespace another_one_that_has_more_letters_than_a_function_of_128_characters_could_have_in_it {
struct a_structure {
    template <typename T> APART static void reduces_once_and_first(T count)
    {
        wrapper_of_allreduce(count);
        sum++;
    }
    template <typename T> APART static void reduces_once_and_later(T count)
    {
        wrapper_of_allreduce(count);
        sum--;
    }
};
}
}

using namespace a_namespace_with_a_name_that_has_very_many_letters::
    another_one_that_has_more_letters_than_a_function_of_128_characters_could_have_in_it;

void known_before(void)
{
    sum++;
}

void calls_twice(void)
{
    MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
    sum++;
    MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
    sum++;
}

static APART void hidden(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    sum++;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    a_structure::reduces_once_and_first<int>(1);
    a_structure::reduces_once_and_later<int>(1);
    known_before();
    calls_twice();
    hidden();
    return MPI_Finalize();
}
