// SPDX-License-Identifier: Apache-2.0
#include "mpi/elf.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "support/failure.h"

namespace carillon::cli {
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);

template <typename T>
bool read_at(std::ifstream& file, std::uint64_t offset, T* value, std::size_t bytes = sizeof(T)) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(
      file.read(reinterpret_cast<char*>(value), static_cast<std::streamsize>(bytes)));
}

// This process's own file says what "this machine" is.
Header own_header() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  Header header{};
  read_at(file, 0, &header);
  return header;
}

void read_elf(std::ifstream& file, ProgramFile* program) {
  Header header{};
  const Header own = own_header();
  program->kind = ProgramFile::Kind::kDamagedElf;
  if (!read_at(file, 0, &header)) return;
  if (header.e_ident[EI_CLASS] != own.e_ident[EI_CLASS] || header.e_machine != own.e_machine) {
    program->kind = ProgramFile::Kind::kForeignElf;
    return;
  }
  const bool linked = header.e_type == ET_EXEC || header.e_type == ET_DYN;
  if (!linked || header.e_phentsize != sizeof(Segment)) return;
  for (int i = 0; i < header.e_phnum; ++i) {
    Segment segment{};
    if (!read_at(file, header.e_phoff + static_cast<std::uint64_t>(i) * header.e_phentsize,
                 &segment)) {
      return;
    }
    if (segment.p_type == PT_DYNAMIC) program->dynamic = true;
    if (segment.p_type == PT_INTERP) {
      constexpr std::uint64_t kLongest = 4096;
      std::string name(std::min<std::uint64_t>(segment.p_filesz, kLongest), '\0');
      if (!read_at(file, segment.p_offset, name.data(), name.size())) return;
      program->loader = name.substr(0, name.find('\0'));
      if (program->loader.empty() || program->loader.size() == kLongest) return;
    }
  }
  program->kind = ProgramFile::Kind::kElf;
}

}  // namespace

ProgramFile read_program_file(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Failure(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)),
                  kNotExecutable);
  }
  ProgramFile program;
  std::string magic(SELFMAG, '\0');
  file.read(magic.data(), SELFMAG);
  if (magic == ELFMAG) {
    read_elf(file, &program);
  } else if (magic.starts_with("#!")) {
    program.kind = ProgramFile::Kind::kScript;
    file.clear();
    file.seekg(2);
    std::string line;
    std::getline(file, line);
    std::istringstream words(line);
    for (std::string word; words >> word;) program.interpreter.push_back(word);
  }
  return program;
}

}  // namespace carillon::cli
