/// Names given out once: a name that is taken gets the suffix 1, 2, … (format section 3.5, collision rule).
///
/// SQLite compares names without regard to the case of ASCII letters, so this does too.
struct NameAllocator {
  private var taken: Set<[UInt8]> = []
  private var nextSuffixes: [[UInt8]: Int] = [:]

  init(reserving names: [String] = []) {
    for name in names { taken.insert(Self.key(name)) }
  }

  /// Gives out the name, with a suffix where it is taken.
  mutating func allocate(_ name: String) -> String {
    let key = Self.key(name)
    guard !taken.insert(key).inserted else { return name }
    var suffix = nextSuffixes[key] ?? 1
    while true {
      let candidate = "\(name)\(suffix)"
      suffix &+= 1
      if taken.insert(Self.key(candidate)).inserted {
        nextSuffixes[key] = suffix
        return candidate
      }
    }
  }

  /// The name as SQLite compares it: ASCII letters upper-cased.
  static func key(_ name: String) -> [UInt8] {
    name.utf8.map { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) ? $0 &- 32 : $0 }
  }
}
