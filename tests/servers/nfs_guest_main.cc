// nfs_guest [SCRIPT]: boots the guest, runs a script of standard input or a file in it, and exits
// as the script did. The host is 10.0.2.2 there.
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "tests/servers/nfs_guest.h"

int main(int argc, char** argv) {
  std::ostringstream script;
  if (argc > 1) {
    script << std::ifstream(argv[1]).rdbuf();
  } else {
    script << std::cin.rdbuf();
  }
  try {
    millrace::testing::NfsGuest guest;
    const auto [status, output] = guest.run(script.str(), std::chrono::minutes(9));
    std::cout << output;
    return status;
  } catch (const std::runtime_error& error) {
    std::cerr << error.what() << "\n";
    return 125;
  }
}
