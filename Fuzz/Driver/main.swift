import FuzzTargets
import Platform
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

// `lazaret-fuzz --list` names the targets, `--seeds TARGET FOLDER` writes a target's seeds and its dictionary, which goes
// beside the folder; anything else is for libFuzzer, which fuzzes the target that LAZARET_FUZZ_TARGET names.

/// Ends the process with words for the caller.
func stop(_ words: String) -> Never {
  print(words)
  exit(64)
}

func target(named name: String) -> FuzzTarget {
  guard let target = FuzzTarget(rawValue: name) else { stop("There is no target \(name); --list names all.") }
  return target
}

let arguments = CommandLine.arguments.dropFirst()
switch arguments.first {
case "--list":
  for target in FuzzTarget.allCases { print("\(target.rawValue) \(target.maximumLength)") }
case "--seeds":
  guard arguments.count == 3 else { stop("lazaret-fuzz --seeds TARGET FOLDER") }
  let target = target(named: arguments[2])
  let folder = FilePath(arguments[3])
  let system = FileSystem()
  for seed in try target.seeds() {
    let file = try system.create(folder.appending("seed-\(seed.name)"), truncating: true)
    try file.write(seed.bytes)
  }
  let file = try system.create(FilePath(folder.string + ".dict"), truncating: true)
  try file.write(Array(target.dictionaryText.utf8))
default:
  guard let name = environment("LAZARET_FUZZ_TARGET") else { stop("LAZARET_FUZZ_TARGET names the target to fuzz.") }
  exit(FuzzerLoop.run(target(named: name)))
}
