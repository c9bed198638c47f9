import Platform
internal import SQLiteFormat

/// The state and owner of each page, as compact maps and counts.
public struct PageStates: Sendable, Hashable {
  /// The state of a page.
  public enum State: String, Sendable, Hashable, CaseIterable {
    /// Found from a root.
    case healthy

    /// Belongs to a table by content; unreachable.
    case orphan

    /// Damaged, whether partly read or not.
    case damaged

    /// Free or unused.
    case free

    /// Continues long values.
    case overflow

    /// A pointer map page or the lock-byte page.
    case special

    /// Has rows that fit no table.
    case unplaced

    /// Zeros or unreadable.
    case unreadable

    /// The state's letter in the map.
    public var letter: Character {
      switch self {
      case .healthy: "h"
      case .orphan: "o"
      case .damaged: "d"
      case .free: "f"
      case .overflow: "v"
      case .special: "s"
      case .unplaced: "u"
      case .unreadable: "x"
      }
    }
  }

  /// A table or index with pages.
  public struct Owner: Sendable, Hashable, Codable {
    /// The name.
    public var name: String

    /// An index's table, else the name.
    public var table: String

    /// Whether it is an index.
    public var isIndex: Bool

    private enum CodingKeys: String, CodingKey {
      case name, table
      case isIndex = "index"
    }
  }

  /// The page size in bytes.
  public var pageSize: Int

  /// The number of pages.
  public var total: Int

  /// The number of mapped pages; less than `total` for too long maps.
  public var mapped: Int

  /// The number of pages by state.
  public var counts: [State: Int]

  /// The states as runs: a letter and a page count.
  public var map: String

  /// The tables and indexes of `ownerMap`.
  public var owners: [Owner]

  /// The owners as runs between commas: index in `owners` or `-`, a colon, page count.
  public var ownerMap: String

  static let maximumRuns = 100_000
}

extension PageStates: Codable {
  private enum CodingKeys: String, CodingKey {
    case pageSize, total, mapped, map, owners, ownerMap
    case healthy, orphan, damaged, free, overflow, special, unplaced, unreadable

    /// The states with the keys of their counts, which have the same names.
    static var states: [(state: State, key: CodingKeys)] {
      State.allCases.compactMap { state in CodingKeys(rawValue: state.rawValue).map { (state, $0) } }
    }
  }

  /// Reads the maps and counts.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    pageSize = try values.decode(Int.self, forKey: .pageSize)
    total = try values.decode(Int.self, forKey: .total)
    mapped = try values.decode(Int.self, forKey: .mapped)
    map = try values.decode(String.self, forKey: .map)
    owners = try values.decode([Owner].self, forKey: .owners)
    ownerMap = try values.decode(String.self, forKey: .ownerMap)
    counts = [:]
    for (state, key) in CodingKeys.states {
      let count = try values.decode(Int.self, forKey: key)
      if count > 0 { counts[state] = count }
    }
  }

  /// Writes the maps and counts.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "pageSize": pageSize, "total": total, "mapped": mapped, "map": map, "owners": owners, "ownerMap": ownerMap,
    ])
    var values = encoder.container(keyedBy: CodingKeys.self)
    for (state, key) in CodingKeys.states { try values.encode(counts[state] ?? 0, forKey: key) }
  }
}

extension PageStates {
  /// A run of pages with the same state and owner.
  public struct Run: Sendable, Hashable {
    /// The page numbers.
    public var pages: ClosedRange<UInt32>

    /// The state.
    public var state: State

    /// The index in ``PageStates/owners``.
    public var owner: Int?
  }

  /// The joint runs, in page order; empty for contradictory maps.
  ///
  /// Each access parses the maps.
  public var runs: [Run] {
    let letters = Dictionary(uniqueKeysWithValues: State.allCases.map { ($0.letter, $0) })
    var states: [(state: State, count: Int)] = []
    var digits = ""
    var current: State?
    for character in map + "." {
      if character.isASCII, character.isNumber {
        digits.append(character)
        continue
      }
      if let state = current {
        guard let count = Int(digits), count > 0 else { return [] }
        states.append((state, count))
      }
      digits = ""
      current = letters[character]
    }
    var result: [Run] = []
    var place = 0
    var left = states.first?.count ?? 0
    var page: Int64 = 1
    for part in ownerMap.split(separator: ",") {
      let pair = part.split(separator: ":")
      guard pair.count == 2, var count = Int(pair[1]), count > 0 else { return [] }
      let owner = pair[0] == "-" ? nil : Int(pair[0])
      if let owner, !owners.indices.contains(owner) { return [] }
      while count > 0, place < states.count {
        let step = min(count, left)
        guard page + Int64(step) - 1 <= Int64(UInt32.max) else { return [] }
        result.append(
          Run(pages: UInt32(page)...UInt32(page + Int64(step) - 1), state: states[place].state, owner: owner))
        page += Int64(step)
        count -= step
        left -= step
        if left == 0 {
          place += 1
          left = place < states.count ? states[place].count : 0
        }
      }
    }
    return result
  }
}

extension PageStates {
  init(_ outcome: RowOutcome) {
    let crawl = outcome.crawl
    var unplaced = PageSet()
    for page in crawl.unplaced { _ = unplaced.insert(page) }
    pageSize = outcome.reader.pageSize
    total = Int(crawl.map.pageCount)
    mapped = 0
    counts = [:]
    map = ""
    ownerMap = ""
    owners = crawl.trees.map { tree in
      Owner(name: tree.name, table: tree.table.map { crawl.trees[$0].name } ?? tree.name, isIndex: tree.kind == .index)
    }
    var states = RunLengths<State>()
    var pageOwners = RunLengths<Int?>()
    for page in stride(from: UInt32(1), through: crawl.map.pageCount, by: 1) {
      let state = Self.state(page, outcome, isUnplaced: unplaced.contains(page))
      counts[state, default: 0] += 1
      guard states.runs.count + pageOwners.runs.count < Self.maximumRuns else { continue }
      mapped += 1
      states.add(state)
      pageOwners.add(crawl.map.owner(page))
    }
    map = states.runs.map { "\($0.value.letter)\($0.count)" }.joined()
    ownerMap = pageOwners.runs.map { run in "\(run.value.map { "\($0)" } ?? "-"):\(run.count)" }.joined(separator: ",")
  }

  private struct RunLengths<Value: Equatable> {
    private(set) var runs: [(value: Value, count: Int)] = []

    mutating func add(_ value: Value) {
      if let last = runs.last, last.value == value {
        runs[runs.count - 1].count += 1
      } else {
        runs.append((value, 1))
      }
    }
  }

  private static func state(_ page: UInt32, _ outcome: RowOutcome, isUnplaced: Bool) -> State {
    if isUnplaced { return .unplaced }
    let crawl = outcome.crawl
    switch crawl.map.fate(page) {
    case .tree: return outcome.wounds.pages[page] == nil ? .healthy : .damaged
    case .placed: return outcome.wounds.pages[page] == nil ? .orphan : .damaged
    case .damaged: return .damaged
    case .overflow: return .overflow
    case .free, .dead: return .free
    case .special: return .special
    case .unclaimed:
      switch crawl.map.look(page) {
      case .zero, .missing, .unknown: return .unreadable
      case .broken: return .damaged
      case .linked, .tableLeaf, .tableInterior, .indexLeaf, .indexInterior: return .orphan
      }
    }
  }
}
