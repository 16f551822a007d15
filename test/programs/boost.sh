# Boost.MPI: serialized objects in its collectives.
packages="libboost-mpi-dev libboost-serialization-dev" mpi=openmpi ranks=4
gain="nothing: Boost.MPI has no nonblocking collective"
prepare()
{
    cat >words.cc <<'END'
#include <boost/mpi.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>
#include <functional>
#include <iostream>
int main(int argc, char **argv)
{
    namespace mpi = boost::mpi;
    mpi::environment env(argc, argv);
    mpi::communicator world;
    std::vector<std::string> all, mine{std::string(size_t(world.rank() + 1), 'x')};
    std::string joined;
    std::vector<std::vector<std::string>> gathered;
    mpi::all_gather(world, mine, gathered);
    mpi::broadcast(world, mine, 1);
    mpi::all_reduce(world, std::string(1, char('a' + world.rank())), joined, std::plus<std::string>());
    int sum = mpi::scan(world, world.rank() + 1, std::plus<int>());
    std::vector<int> sums;
    mpi::gather(world, sum, sums, 0);
    if (world.rank() == 0) {
        for (auto &g : gathered)
            std::cout << g[0] << " ";
        for (int s : sums)
            std::cout << s << " ";
        std::cout << mine[0] << " " << joined << std::endl;
    }
}
END
    $CXX -O1 -o words words.cc -lboost_mpi -lboost_serialization
}
command_line="./words"
