internal import PersistentStore
internal import Platform
import SQLiteFormat

/// Makes the accounts of all entities, by number where they share a table.
struct EntityAccounts {
  typealias Entity = SalvageReport.Entity

  let outcome: RowOutcome
  let list: TreeList

  let kit: KitEvidence?

  struct Losses {
    var count: Int64 = 0

    var basis = Entity.Basis.none

    var keys = KeyRanges()

    var likely = KeyRanges()

    /// Nil where entities cannot be distinguished.
    var byEntity: [Int64: KeyRanges]?

    /// Takes likely rowids unless they far outnumber the rows.
    mutating func take(likely keys: KeyRanges) {
      let candidates = keys.subtracting(self.keys)
      let others = max(0, count - self.keys.count)
      if candidates.count / 2 <= others, others > 0 { likely = candidates }
    }
  }

  func all() throws -> [Entity] {
    let estimate = try LossEstimate(outcome, isCoreData: list.isCoreData)
    let tables = outcome.crawl.trees.indices.filter { index in
      !outcome.crawl.trees[index].isInternal && (outcome.live[index] != nil || outcome.tallies[index].deleted > 0)
    }
    let names = tables.map { list.entityNames(ofTable: outcome.tallies[$0].name) }
    let onPages = try zip(tables, names).map { index, names in
      try estimate.rowsOnLostPages(of: index, numbers: names.map { Int64($0.number) })
    }
    let bounded = estimate.bounded(Array(zip(tables, onPages)))
    return try tables.enumerated().flatMap { place, index in
      let losses = try losses(
        of: index, numbers: names[place].map { Int64($0.number) }, onPages: bounded[place], estimate)
      return try accounts(of: index, losses, names[place])
    }
  }

  /// SQLite allows no function in views of an untrusted schema, so the result's view is avoided.
  private static let provenance = EvidenceNotes.rows(in: "")

  private static let pages = EvidenceNotes.pages(in: "")

  // MARK: Losses

  private func losses(of index: Int, numbers: [Int64], onPages: Int64?, _ estimate: LossEstimate) throws -> Losses {
    let tally = outcome.tallies[index]
    let counted = try countedByIndex(index, estimate)
    if let kit, let known = try kit.losses(of: index, outcome, estimate, numbers: numbers) {
      let best = counted.flatMap { better($0, than: known, of: kit) } ?? known
      // A kit's lists lack later writes.
      let isSettled = best.count > 0 || counted != nil || kit.use.isCurrent || kit.isAsNoted
      if isSettled || !outcome.crawl.lacksPagesBehindEnd(of: index) { return best }
    }
    if isMetadata(index) { return tally.recovered > 0 ? Losses() : Losses(count: 1, basis: .cells) }
    if try isUnlisted(index, estimate) { return Losses(basis: .unknown) }
    if let counted { return counted }
    var keys = try keysOfRemains(of: index)
    if onPages != 0 { keys = try keys.union(estimate.listedKeys(of: index)) }
    let count = max(tally.destroyed + (onPages ?? 0), keys.count)
    if isBookkeeping(index), tally.destroyed == 0, count > keys.count || isEmptiedList(index) {
      return Losses(basis: .unknown)
    }
    guard count > 0 else {
      let isUnknown = onPages == nil || tally.isContradicted || outcome.reader.isOfTwoTimes
      return Losses(basis: isUnknown ? .unknown : .none)
    }
    let isCounted = onPages == 0 && keys.count == count && !tally.isContradicted
    var losses = Losses(count: count, basis: isCounted ? .cells : .estimate, keys: keys)
    if onPages != 0 { losses.take(likely: try estimate.keysOfLostEnd(of: index, numbers: numbers)) }
    return losses
  }

  private func isMetadata(_ index: Int) -> Bool {
    list.isCoreData && isSame(outcome.crawl.trees[index].name, "Z_METADATA")
  }

  /// Whether the list of entities is empty despite entities.
  private func isEmptiedList(_ index: Int) -> Bool {
    isSame(outcome.crawl.trees[index].name, "Z_PRIMARYKEY") && outcome.tallies[index].recovered == 0
      && outcome.crawl.trees.contains {
        $0.definition?.column(named: "Z_ENT") != nil && !isSame($0.name, "Z_PRIMARYKEY")
      }
  }

  /// Whether a table is Core Data's bookkeeping, with at most a row per entity whatever its pages could hold.
  private func isBookkeeping(_ index: Int) -> Bool {
    list.isCoreData && StoreLayout.bookkeepingTableNames.contains(outcome.crawl.trees[index].name.uppercased())
  }

  /// Returns listed rows found nowhere; nil without an intact index.
  private func countedByIndex(_ index: Int, _ estimate: LossEstimate) throws -> Losses? {
    let tally = outcome.tallies[index]
    guard tally.isCounted else { return nil }
    guard tally.lost > 0 else { return Losses() }
    // An index of another time may list deleted rows.
    guard !tally.isDisputed else { return Losses(count: tally.lost, basis: .estimate) }
    return Losses(count: tally.lost, basis: .index, keys: try estimate.listedKeys(of: index))
  }

  /// Returns an index's count where a kit only estimates.
  ///
  /// An index has the writes since the kit. A kit that lists more rows knows a WAL that may be lost, and only a kit
  /// distinguishes entities.
  private func better(_ counted: Losses, than known: Losses, of kit: KitEvidence) -> Losses? {
    guard !kit.use.isCurrent, counted.basis != .estimate, counted.count >= known.count || !kit.isAsNoted else {
      return nil
    }
    guard let byEntity = known.byEntity else { return counted }
    guard known.keys == counted.keys else { return nil }
    var counted = counted
    counted.byEntity = byEntity
    return counted
  }

  /// Whether a table missing from an otherwise sound list may have had rows, by Core Data's notes of assigned keys;
  /// pairs need keys on both sides.
  private func isUnlisted(_ index: Int, _ estimate: LossEstimate) throws -> Bool {
    let tree = outcome.crawl.trees[index]
    guard list.isWhole, !tree.isListed, !tree.isDropped, outcome.tallies[index].recovered == 0 else { return false }
    let sides = list.sides(ofJoinTable: tree.name)
    for names in sides.isEmpty ? [list.entityNames(ofTable: tree.name).map(\.name)] : sides {
      if try !estimate.mayHaveGivenKeys(to: names) { return false }
    }
    return true
  }

  private func keysOfRemains(of index: Int) throws -> KeyRanges {
    guard let other = outcome.tables.others[index], outcome.crawl.trees[index].hasRowids, let live = outcome.live[index]
    else { return KeyRanges() }
    let rows = try outcome.database.prepare(
      "SELECT DISTINCT \"key\" FROM (\(Self.provenance)) WHERE \"table\" = \(SQLText.literal(other.name)) "
        + "AND \"key\" NOT NULL AND reason LIKE '%long value%' ORDER BY 1 LIMIT 100000")
    var keys: [Int64] = []
    while try rows.step() { keys.append(rows.integer(0)) }
    var missing = KeyRanges()
    for key in keys where try !live.hasRow(key) { missing.append(key) }
    return missing
  }

  // MARK: Attribution

  private func accounts(of index: Int, _ losses: Losses, _ names: [(name: String, number: Int)]) throws -> [Entity] {
    let tally = outcome.tallies[index]
    var whole = Entity(
      name: tally.name, table: tally.name, recovered: tally.recovered, doubts: tally.doubts, rebuilt: tally.fromIndex,
      lost: losses.count, lostBasis: losses.basis, keptApart: tally.keptApart, deleted: tally.deleted)
    whole.fromBackup = tally.fromBackup
    whole.keptParts = tally.keptParts
    for rowid in tally.ofUnknownEntity where try outcome.live[index]?.hasRow(rowid) != true { whole.setAside += 1 }
    whole.lostKeysKnown = losses.keys.count
    whole.lostKeys = losses.keys.prefix(ranges: Entity.maximumRanges)
    whole.lostKeysEstimated = losses.likely.prefix(ranges: Entity.maximumRanges)
    guard let first = names.first else { return [whole] }
    whole.name = first.name
    // Only entity numbers distinguish the entities of a table.
    guard names.count > 1, outcome.crawl.trees[index].definition?.column(named: "Z_ENT") != nil else { return [whole] }
    let numbers = names.map { Int64($0.number) }
    var shares = try names.map { try outcome.live[index]?.count(ofEntity: $0.number) ?? 0 }
    // Rows with an invalid number count for the root entity.
    shares[0] += max(0, tally.recovered - shares.reduce(0, +))
    let unknown = Int64(tally.ofUnknownEntity.count)
    var doubts = numbers.map { _ in [DoubtReason: Int64]() }
    for (reason, count) in tally.doubts {
      let parts = apportion(count, try doubtfulWeights(tally.name, reason, numbers), else: shares)
      for (place, part) in parts.enumerated() where part > 0 { doubts[place][reason] = part }
    }
    var apart = try split(max(0, tally.keptApart - unknown), outcome.tables.others[index], numbers, else: shares)
    let deleted = try split(tally.deleted, outcome.tables.deleted[index], numbers, else: shares)
    apart[0] += min(unknown, tally.keptApart)
    let parts =
      tally.keptParts == 0
      ? numbers.map { _ in 0 }
      : apportion(tally.keptParts, try doubtfulWeights(tally.name, .longValue, numbers), else: shares)
    let rebuilt = apportion(tally.fromIndex, shares, else: shares)
    let fromBackup =
      tally.fromBackup == 0
      ? numbers.map { _ in 0 } : apportion(tally.fromBackup, try backupWeights(tally.name, numbers), else: shares)
    let lost = losses.byEntity == nil ? apportion(losses.count, shares, else: shares) : []
    return names.enumerated().map { place, entity in
      var account = whole
      account.name = entity.name
      account.recovered = shares[place]
      account.doubts = doubts[place]
      account.rebuilt = rebuilt[place]
      account.fromBackup = fromBackup[place]
      account.keptApart = apart[place]
      account.keptParts = min(parts[place], apart[place])
      account.setAside = place == 0 ? whole.setAside : 0
      account.deleted = deleted[place]
      // The entity of a row with an estimated key is unknown.
      account.lostKeysEstimated = KeyRanges()
      if let keys = losses.byEntity?[Int64(entity.number)] {
        account.lost = losses.basis == .estimate ? max(0, keys.count) : keys.count
        account.lostBasis = keys.isEmpty && losses.basis != .estimate ? .none : losses.basis
        account.lostKeysKnown = keys.count
        account.lostKeys = keys.prefix(ranges: Entity.maximumRanges)
      } else {
        account.lost = losses.byEntity == nil ? lost[place] : 0
        // The entity of a lost row is unknown, so shares are estimates.
        account.lostBasis = account.lost > 0 ? .estimate : losses.basis == .unknown ? .unknown : .none
        account.lostKeys = KeyRanges()
        account.lostKeysKnown = 0
      }
      return account
    }
  }

  private func doubtfulWeights(_ name: String, _ reason: DoubtReason, _ numbers: [Int64]) throws -> [Int64] {
    let table = SQLText.quotedIdentifier(name)
    let text = SQLText.literal(name)
    let rows = try counts(
      "SELECT Z_ENT, count(*) FROM \(table) WHERE rowid IN (SELECT \"key\" FROM (\(Self.provenance)) "
        + "WHERE \"table\" = \(text) AND doubt = '\(reason.rawValue)') GROUP BY 1")
    let pages = try counts(
      "SELECT t.Z_ENT, count(*) FROM (\(Self.pages)) p JOIN \(table) t ON t.rowid BETWEEN p.first_key AND p.last_key "
        + "WHERE p.\"table\" = \(text) AND p.doubt = '\(reason.rawValue)' GROUP BY 1")
    return numbers.map { (rows[$0] ?? 0) + (pages[$0] ?? 0) }
  }

  private func backupWeights(_ name: String, _ numbers: [Int64]) throws -> [Int64] {
    let rows = try counts(
      "SELECT Z_ENT, count(*) FROM \(SQLText.quotedIdentifier(name)) WHERE rowid IN (SELECT \"key\" "
        + "FROM (\(Self.provenance)) WHERE \"table\" = \(SQLText.literal(name)) AND source = 'backup') GROUP BY 1")
    return numbers.map { rows[$0] ?? 0 }
  }

  private func split(
    _ count: Int64, _ table: OutputTable?, _ numbers: [Int64], else shares: [Int64]
  ) throws -> [Int64] {
    guard count > 0, let table else { return numbers.map { _ in 0 } }
    let found = try counts("SELECT Z_ENT, count(*) FROM \(SQLText.quotedIdentifier(table.name)) GROUP BY 1")
    return apportion(count, numbers.map { found[$0] ?? 0 }, else: shares)
  }

  private func counts(_ sql: String) throws -> [Int64: Int64] {
    let statement = try outcome.database.prepare(sql)
    var counts: [Int64: Int64] = [:]
    while try statement.step() { counts[statement.integer(0)] = statement.integer(1) }
    return counts
  }

  /// Divides a count by weights, or by others if those are zero; the parts add up.
  private func apportion(_ count: Int64, _ weights: [Int64], else others: [Int64]) -> [Int64] {
    var weights = weights
    if weights.allSatisfy({ $0 == 0 }) { weights = others }
    if weights.allSatisfy({ $0 == 0 }) { weights = weights.enumerated().map { $0.offset == 0 ? 1 : 0 } }
    let total = weights.reduce(0.0) { $0 + Double($1) }
    let exact = weights.map { Double(count) * Double($0) / total }
    var parts = exact.map { Int64($0) }
    let order = exact.indices.ordered { exact[$0] - exact[$0].rounded(.down) > exact[$1] - exact[$1].rounded(.down) }
    var rest = count - parts.reduce(0, +)
    for place in order where rest > 0 {
      parts[place] += 1
      rest -= 1
    }
    return parts
  }
}
