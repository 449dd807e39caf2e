// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

#include <arpa/inet.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace carillon::bench {

std::vector<std::string> words_of(const char* list, char separator) {
  std::istringstream input(list);
  std::vector<std::string> words;
  for (std::string word; std::getline(input, word, separator);) words.push_back(word);
  return words;
}

std::vector<std::size_t> numbers_of(const char* list) {
  std::vector<std::size_t> numbers;
  for (const std::string& word : words_of(list)) {
    numbers.push_back(std::strtoull(word.c_str(), nullptr, 10));
  }
  return numbers;
}

Place parse_place(char** words) {
  Place place;
  place.nodes = std::atoi(words[0]);
  place.ranks_per_node = std::atoi(words[1]);
  place.node = std::atoi(words[2]);
  place.rank_0.sin_family = AF_INET;
  inet_pton(AF_INET, words[3], &place.rank_0.sin_addr);
  place.rank_0.sin_port = htons(static_cast<std::uint16_t>(std::atoi(words[4])));
  // NOLINTNEXTLINE(concurrency-mt-unsafe): start-up
  if (const char* const node = std::getenv("CARILLON_NODE"); place.node == 0 && node != nullptr) {
    place.node = std::atoi(node);
  }
  return place;
}

int run_ranks(Place place, const std::function<void(Bootstrap&)>& body) {
  Socket listening;
  if (place.node <= 0) listening = listen_at(&place.rank_0);
  const int first = std::max(place.node, 0) * place.ranks_per_node;
  const int here = place.node < 0 ? place.ranks() : place.ranks_per_node;
  for (int rank = first; rank < first + here; ++rank) {
    if (fork() != 0) continue;
    {
      Bootstrap bootstrap(rank, place.ranks(), place.rank_0,
                          rank == 0 ? std::move(listening) : Socket());
      body(bootstrap);
    }
    std::exit(0);
  }
  listening = Socket();
  int result = 0;
  for (int status = 0; wait(&status) > 0;) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) result = 1;
  }
  return result;
}

}  // namespace carillon::bench
