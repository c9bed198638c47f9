internal import SQLiteFormat

/// Pages in one tree with content of another.
struct MisplacedPages {
  fileprivate(set) var pages: [Int: PageSet] = [:]

  /// Misplaced copies, with the original in its own tree.
  fileprivate(set) var copies: [UInt32: UInt32] = [:]

  /// Identical pages of two tables without evidence of a copy.
  fileprivate(set) var undecided = PageSet()

  /// Identical pages of two otherwise different tables, either of which may be the copy.
  var copied = PageSet()

  var isEmpty: Bool { pages.isEmpty }

  func isUndecided(_ page: UInt32) -> Bool { undecided.contains(page) }

  func contains(_ page: UInt32, in tree: Int) -> Bool { pages[tree]?.contains(page) ?? false }
}

/// Finds misplaced pages within tables.
///
/// A page in the wrong place is sound, and as its table's only page contradicts no key. Evidence: its rows fit another
/// table that has them, or only the other's indexes have them. Otherwise SQLite's reading stands, however odd.
struct MisplacedPageSearch {
  private static let comparedRows = 16

  /// The missing fields tolerated without a closer look.
  private static let lackedFields = 3

  private static let sampledLeaves = 8

  /// The fewest rows that an app hardly writes to a page of two otherwise different tables.
  private static let copiedRows = 4

  private var crawl: Crawl
  private var found = MisplacedPages()
  private var buffer: [UInt8]

  /// The places of leaves in their trees.
  private var places: [Int: [UInt32: Int]] = [:]

  private let twins: PageTwins

  /// Runs the search.
  ///
  /// - Parameters:
  ///   - crawl: the walked trees.
  ///   - trees: the same trees with all constraints on rows.
  static func run(_ crawl: Crawl, shapedAs trees: [Tree]) throws -> MisplacedPages {
    var search = try MisplacedPageSearch(crawl, shapedAs: trees)
    try search.run()
    return search.found
  }

  private init(_ crawl: Crawl, shapedAs trees: [Tree]) throws {
    self.crawl = crawl
    for (index, tree) in trees.enumerated() where self.crawl.trees.indices.contains(index) {
      self.crawl.trees[index].shape = tree.shape
    }
    buffer = crawl.reader.makeBuffer()
    twins = try PageTwins(crawl)
  }

  private mutating func run() throws {
    try lookAtListOfTables()
    for tree in crawl.firstWalk.emptied { note(crawl.trees[tree].root, in: tree) }
    for tree in crawl.trees.indices.dropFirst() where crawl.trees[tree].kind != .index && crawl.trees[tree].isListed {
      for page in crawl.trees[tree].leaves where crawl.map.fieldCount(page) > 0 { try lookAt(page, of: tree) }
      try lookAtRest(of: tree)
    }
    try findExchanges()
    // Index entries resemble rows without rowids.
    for tree in crawl.trees.indices where crawl.trees[tree].kind == .withoutRowid && crawl.damage > 0 {
      for page in crawl.trees[tree].leaves + crawl.trees[tree].innerPages where crawl.map.fieldCount(page) > 0 {
        if try crawl.index(withEntriesOf: page, &buffer) != nil { note(page, in: tree) }
      }
    }
    for (page, rivals) in crawl.contested.sorted(by: { $0.key < $1.key }) { try settle(page, among: rivals) }
  }

  private mutating func note(_ page: UInt32, in tree: Int, copyOf twin: UInt32? = nil) {
    _ = found.pages[tree, default: PageSet()].insert(page)
    if let twin { found.copies[page] = twin }
  }

  // MARK: Pages of the list of tables

  /// Notes schema table pages with other rows.
  private mutating func lookAtListOfTables() throws {
    for page in crawl.trees[0].leaves where page > 1 && crawl.map.fieldCount(page) > 0 {
      guard try crawl.reader.readPlace(page, into: &buffer),
        PageScore.fit(buffer.span, start: 0, crawl.trees[0].shape, geometry: crawl.reader.geometry) == nil
      else { continue }
      note(page, in: 0, copyOf: try twins(of: page, outside: 0).first)
    }
  }

  // MARK: Pages of tables

  /// Notes all leaves of a tree if its gaps lead to pages of just one other table: a root leads to one table.
  private mutating func lookAtRest(of tree: Int) throws {
    guard crawl.trees[tree].hasRowids else { return }
    var owner: Int?
    for page in crawl.trees[tree].gaps.map(\.page).prefix(Self.sampledLeaves) {
      guard page > 1, page <= crawl.map.pageCount, crawl.map.look(page) == .tableLeaf,
        crawl.map.fieldCount(page) > crawl.trees[tree].shape.fields.count,
        let choice = try crawl.choice(for: page, &buffer, where: { $0 != tree }), !choice.fit.isShort,
        owner == nil || owner == choice.tree
      else { return }
      owner = choice.tree
    }
    guard let owner, crawl.trees[owner].isListed else { return }
    for page in crawl.trees[owner].leaves where crawl.map.fieldCount(page) > 0 && !found.contains(page, in: owner) {
      let fits = try crawl.fits(of: page, &buffer) { $0 == owner || $0 == tree }
      guard let here = fits.first(where: { $0.tree == tree }), let there = fits.first(where: { $0.tree == owner }),
        here.fit.tier < there.fit.tier
      else { return }
    }
    for page in crawl.trees[tree].leaves where crawl.map.fieldCount(page) > 0 {
      if try crawl.choice(for: page, &buffer, where: { $0 == owner }) != nil { note(page, in: tree) }
    }
  }

  /// Notes the only page of a table that swapped pages with another.
  private mutating func findExchanges() throws {
    for tree in crawl.trees.indices.dropFirst() where crawl.trees[tree].hasRowids && crawl.trees[tree].isListed {
      let lost = crawl.trees[tree].gaps.map(\.page).filter {
        $0 > 1 && $0 <= crawl.map.pageCount && crawl.map.look($0) == .tableLeaf && crawl.map.fieldCount($0) > 0
      }
      let strange = crawl.trees[tree].leaves.filter { found.contains($0, in: tree) && found.copies[$0] == nil }
      for page in lost.prefix(Self.comparedRows) + strange {
        var exchanged: [(page: UInt32, owner: Int)] = []
        let owners = try crawl.fits(of: page, &buffer) { $0 != tree && crawl.trees[$0].isListed }.map(\.tree)
        // Another table may lack the page.
        if owners.contains(where: { crawl.firstWalk.incomplete.contains($0) }) { continue }
        for owner in owners {
          guard crawl.trees[owner].leaves == [crawl.trees[owner].root], let own = crawl.trees[owner].leaves.first,
            !found.contains(own, in: owner), crawl.map.fieldCount(own) > 0, !overlaps(tree, own, without: page),
            try crawl.choice(for: own, &buffer, where: { $0 == tree })?.fit.isShort == false
          else { continue }
          exchanged.append((own, owner))
        }
        if exchanged.count == 1 { note(exchanged[0].page, in: exchanged[0].owner) }
      }
    }
  }

  private func overlaps(_ tree: Int, _ page: UInt32, without other: UInt32) -> Bool {
    let (first, last) = (crawl.map.firstKey(page), crawl.map.lastKey(page))
    return crawl.trees[tree].leaves.contains {
      $0 != other && crawl.map.firstKey($0) <= last && first <= crawl.map.lastKey($0)
    }
  }

  private mutating func lookAt(_ page: UInt32, of tree: Int) throws {
    guard !found.contains(page, in: tree), try crawl.reader.readPlace(page, into: &buffer) else { return }
    let isOwn = PageScore.isFull(
      buffer.span, start: 0, crawl.trees[tree].shape, geometry: crawl.reader.geometry,
      lacking: crawl.firstWalk.grown.contains(tree) ? Self.lackedFields : 0)
    if !isOwn, try isUnlike(page, tree) { try lookAtStrange(page, of: tree) }
    let twins = try self.twins.twins(of: page, in: crawl)
    guard !crawl.trees[tree].isShadow, twins.count < PageTwins.limit else { return }
    for twin in twins {
      guard let other = crawl.map.owner(twin), !found.contains(page, in: tree), !found.contains(twin, in: other)
      else { continue }
      if other == tree {
        // A tree has each key once.
        note(twin, in: tree, copyOf: page)
      } else if other > tree, crawl.trees[other].isListed, !crawl.trees[other].isShadow {
        // Check each pair once.
        try settle(page, of: tree, twin, of: other)
      }
    }
  }

  private mutating func isUnlike(_ page: UInt32, _ tree: Int) throws -> Bool {
    if try !crawl.hasRows(page, of: tree) { return true }
    guard crawl.trees[tree].hasRowids, let best = try crawl.choice(for: page, &buffer, where: { $0 != tree }),
      !best.fit.isShort, !best.fit.isUnusual
    else { return false }
    guard let own = try crawl.choice(for: page, &buffer, where: { $0 == tree }) else { return true }
    return own.fit.isUnusual && best.score - own.score >= 1
  }

  /// Examines a page that fits another table better, weak evidence as SQLite takes almost any value.
  private mutating func lookAtStrange(_ page: UInt32, of tree: Int) throws {
    let isPossible = try canHold(page, tree)
    let fits = try crawl.fits(of: page, &buffer) { _ in true }
    if crawl.firstWalk.isOfAnother(than: tree, fits) {
      note(page, in: tree)
      return
    }
    if try isOfAnotherEntity(page, tree) {
      note(page, in: tree, copyOf: try twins(of: page, outside: tree).first)
      return
    }
    if isPossible, !crawl.trees[tree].shape.isStrict,
      try crawl.indexAgreement(of: page, with: tree) != .contradicted
    {
      return
    }
    if let twin = try twins(of: page, outside: tree).first {
      note(page, in: tree, copyOf: twin)
      return
    }
    var isOther =
      !isPossible
      && (crawl.trees[tree].shape.isStrict || fits.contains { $0.tree != tree && $0.fit.tier == 0 })
    if !isOther { isOther = try hasRowsElsewhere(page, of: tree) }
    if isOther { note(page, in: tree) }
  }

  private func twins(of page: UInt32, outside tree: Int) throws -> [UInt32] {
    try twins.twins(of: page, in: crawl).filter { crawl.map.owner($0) != tree }
  }

  /// Decides which of two identical pages is a copy, by possible values, shapes, places and indexes.
  private mutating func settle(
    _ page: UInt32, of tree: Int, _ twin: UInt32, of other: Int
  ) throws {
    let isCopied = try isCopied(page, of: tree, twin, of: other)
    guard isCopied || crawl.trees[tree].hasRowids else { return }
    switch (try canHold(page, tree), try canHold(twin, other)) {
    case (false, true):
      note(page, in: tree, copyOf: twin)
      return
    case (true, false):
      note(twin, in: other, copyOf: page)
      return
    case (true, true), (false, false): break
    }
    if isCopied {
      let (own, others) = (try misfit(page, tree), try misfit(twin, other))
      if own > others { note(page, in: tree, copyOf: twin) }
      if own < others { note(twin, in: other, copyOf: page) }
      if own != others { return }
    }
    let own = try crawl.indexAgreement(of: page, with: tree)
    let others = try crawl.indexAgreement(of: twin, with: other)
    switch (own, others) {
    case (.contradicted, .agreeing), (.contradicted, .untold): note(page, in: tree, copyOf: twin)
    case (.agreeing, .contradicted), (.untold, .contradicted): note(twin, in: other, copyOf: page)
    case (.untold, .agreeing) where isCopied: note(page, in: tree, copyOf: twin)
    case (.agreeing, .untold) where isCopied: note(twin, in: other, copyOf: page)
    case (.contradicted, .contradicted) where isCopied, (.untold, .untold) where isCopied:
      _ = found.copied.insert(page)
      _ = found.copied.insert(twin)
    case (.agreeing, .agreeing): break
    case (.contradicted, .contradicted), (.untold, _), (_, .untold):
      _ = found.undecided.insert(page)
      _ = found.undecided.insert(twin)
    }
  }

  /// Whether two identical pages have no row in common beside them, unlike a table and its copy by an app.
  private mutating func isCopied(
    _ page: UInt32, of tree: Int, _ twin: UInt32, of other: Int
  ) throws -> Bool {
    guard crawl.map.cellCount(page) >= Self.copiedRows else { return false }
    let own = try rows(beside: page, of: tree)
    let others = try rows(beside: twin, of: other)
    return !own.isEmpty && !others.isEmpty && own.isDisjoint(with: others)
  }

  /// Returns the records of the leaves beside a page.
  private mutating func rows(beside page: UInt32, of tree: Int) throws -> Set<ArraySlice<UInt8>> {
    let leaves = crawl.trees[tree].leaves
    if places[tree] == nil { places[tree] = Dictionary(zip(leaves, leaves.indices)) { first, _ in first } }
    guard let place = places[tree]?[page] else { return [] }
    let reader = PageRows(crawl.reader)
    var rows: Set<ArraySlice<UInt8>> = []
    for near in [place - 1, place + 1] where leaves.indices.contains(near) {
      if crawl.trees[tree].hasRowids {
        try reader.forEach(on: leaves[near]) { row in rows.insert(row.record.payload) }
      } else {
        try reader.forEachEntry(on: leaves[near]) { record in rows.insert(record.payload) }
      }
    }
    return rows
  }

  /// Returns the evidence of rows and keys against a page in a tree.
  private mutating func misfit(_ page: UInt32, _ tree: Int) throws -> Int {
    let tier = try crawl.fits(of: page, &buffer) { $0 == tree }.first?.fit.tier ?? 4
    return 2 * tier + (crawl.outsideSpan.contains(page) ? 1 : 0)
  }

  private func hasRowsElsewhere(_ page: UInt32, of tree: Int) throws -> Bool {
    guard crawl.trees[tree].hasRowids else { return false }
    var samples: [PageRows.Row] = []
    let rows = PageRows(crawl.reader)
    try rows.forEach(on: page) { row in if samples.count < Self.comparedRows { samples.append(row) } }
    var buffer = crawl.reader.makeBuffer()
    for other in try crawl.ties(for: page, &buffer, where: { $0 != tree }) {
      var same = 0
      var leaf: UInt32 = 0
      var known: [Int64: Record] = [:]
      for sample in samples {
        guard let place = crawl.leaf(endingFrom: sample.rowid, in: crawl.trees[other].leaves) else { break }
        if place != leaf {
          leaf = place
          known.removeAll(keepingCapacity: true)
          try rows.forEach(on: place) { row in known[row.rowid] = row.record }
        }
        if let record = known[sample.rowid], record.payload == sample.record.payload { same += 1 }
      }
      if same * 2 > samples.count { return true }
    }
    return false
  }

  /// Whether any row could have been written to a table.
  ///
  /// Impossible are a value for the rowid alias, a number as text, NULL in a NOT NULL column, and a non-integer
  /// `Z_ENT`.
  private func canHold(_ page: UInt32, _ tree: Int) throws -> Bool {
    guard let definition = crawl.trees[tree].definition else { return true }
    let rules = FieldRules(definition)
    let hasEntities = crawl.trees[tree].shape.entityNumbers != nil
    var count = 0
    var possible = 0
    func look(_ record: Record) {
      count += 1
      let codes = record.serialTypes.map(\.rawValue)
      let entity = hasEntities && codes.count > 1 ? StorageClasses(serialType: codes[1]) : .null
      if entity == .integer || entity == .null, rules.allow(codes) { possible += 1 }
    }
    let rows = PageRows(crawl.reader)
    if crawl.trees[tree].hasRowids {
      try rows.forEach(on: page) { look($0.record) }
    } else if crawl.map.look(page) == .indexLeaf {
      try rows.forEachEntry(on: page, look)
    }
    return count == 0 || possible > 0
  }

  private mutating func isOfAnotherEntity(_ page: UInt32, _ tree: Int) throws -> Bool {
    guard crawl.trees[tree].hasRowids, let own = crawl.trees[tree].shape.entityNumbers,
      let best = try crawl.choice(for: page, &buffer, where: { $0 != tree }), crawl.trees[best.tree].isListed,
      let others = crawl.trees[best.tree].shape.entityNumbers
    else { return false }
    var count = 0
    var areOthers = true
    try PageRows(crawl.reader).forEach(on: page) { row in
      count += 1
      let number = row.record.value(at: 1)?.integer
      if number.map({ own.contains($0) || !others.contains($0) }) ?? true { areOthers = false }
    }
    return count > 0 && areOthers
  }

  // MARK: Pages that two trees lead to

  /// Decides which tree owns a page; none where undecidable.
  private mutating func settle(_ page: UInt32, among rivals: Set<Int>) throws {
    var leaves: [UInt32] = []
    try addLeaves(below: page, to: &leaves, depth: 0)
    var votes: [Int: Int] = [:]
    let rivals = rivals.sorted()
    for leaf in leaves {
      if let choice = try crawl.choice(for: leaf, &buffer, where: { rivals.contains($0) }), choice.isDecisive {
        votes[choice.tree, default: 0] += 1
      } else if let tree = try crawl.indexedTree(of: leaf, among: rivals) {
        votes[tree, default: 0] += 1
      }
    }
    let owner = votes.max { ($0.value, $1.key) < ($1.value, $0.key) }.flatMap {
      $0.value * 2 > leaves.count ? $0.key : nil
    }
    for tree in rivals where tree != owner { note(page, in: tree) }
  }

  private func addLeaves(below page: UInt32, to leaves: inout [UInt32], depth: Int) throws {
    guard depth < Crawl.maximumDepth, leaves.count < Self.sampledLeaves else { return }
    switch crawl.map.look(page) {
    case .tableLeaf, .indexLeaf: if crawl.map.fieldCount(page) > 0 { leaves.append(page) }
    case .tableInterior, .indexInterior:
      for child in try InnerPage(page, crawl.reader).children where child <= crawl.map.pageCount {
        try addLeaves(below: child, to: &leaves, depth: depth + 1)
      }
    case .missing, .zero, .unknown, .broken, .linked: break
    }
  }
}

extension Crawl {
  /// Drops misplaced copies; their own trees have the originals.
  mutating func buryCopies() {
    for (page, twin) in strangers.copies.sorted(by: { $0.key < $1.key }) where map.fate(twin) == .tree { bury(page) }
  }
}
