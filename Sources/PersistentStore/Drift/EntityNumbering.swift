import ManagedObjectModel

/// The entities of a hierarchy's rows, by entity number.
///
/// If `Z_PRIMARYKEY` and the model disagree, the rows decide, as in a repair: the numbering that covers all rows holds.
/// A table with one concrete entity holds only its records, whatever the numbers.
struct EntityNumbering: Sendable {
  private let layout: StoreLayout
  private let keyRows: [StoreOutline.KeyRow]

  init(_ layout: StoreLayout, _ keyRows: [StoreOutline.KeyRow]) {
    self.layout = layout
    self.keyRows = keyRows
  }

  struct Share: Sendable, Hashable {
    /// Row counts; entities neither here nor contested have no rows.
    var rows: [String: Int] = [:]

    /// Entities that share a number between the model and `Z_PRIMARYKEY`.
    var contested: Set<String> = []

    /// Rows with a number outside the hierarchy.
    var ofNone = 0
  }

  /// Assigns the rows of a hierarchy's table to entities.
  ///
  /// - Parameter counts: rows per number; nil for values other than integers.
  func share(of counts: [Int64?: Int], root: EntityLayout) -> Share {
    var share = Share()
    if let sole = layout.soleNumber(ofRoot: root.name), let entity = layout.entity(numbered: sole) {
      share.rows[entity.name] = counts.values.reduce(0, +)
      return share
    }
    let known = known(of: root)
    let numbers = counts.keys.compactMap(\.self)
    let isModels = numbers.allSatisfy { modelEntity($0, root) != nil }
    let isStores = numbers.allSatisfy { known[$0] != nil }
    for (number, count) in counts {
      let ofModel = number.flatMap { modelEntity($0, root) }
      let ofStore = number.flatMap { known[$0] }
      if let ofModel, let ofStore, ofModel != ofStore, isModels == isStores {
        share.contested.formUnion([ofModel.name, ofStore.name])
      } else if let entity = isStores && !isModels ? ofStore : ofModel ?? ofStore {
        share.rows[entity.name, default: 0] += count
      } else {
        share.ofNone += count
      }
    }
    return share
  }

  /// Returns whether giving a hierarchy's rows the model's numbers needs a guess, or contradicts persistent history or
  /// mirroring.
  ///
  /// - Parameters:
  ///   - hasOthers: whether rows have non-integer values.
  ///   - isFollowed: whether history or mirroring tables use entity numbers.
  func isStuck(_ root: EntityLayout, numbers: Set<Int64>, hasOthers: Bool, isFollowed: Bool) -> Bool {
    if let sole = layout.soleNumber(ofRoot: root.name) {
      guard hasOthers || numbers.contains(where: { $0 != Int64(sole) }) else { return false }
      let isInPlace = keyRows.contains { row in
        row.number == Int64(sole) && layout.entity(numbered: sole).map { layout.isName(row.name, of: $0) } == true
      }
      return isFollowed && !isInPlace
    }
    if hasOthers { return true }
    let known = known(of: root)
    if known.count > Set(known.values).count { return true }
    if numbers.allSatisfy({ known[$0].map { Int64($0.number) } == $0 }) { return false }
    let isModels = numbers.allSatisfy { modelEntity($0, root) != nil }
    let isStores = numbers.allSatisfy { known[$0] != nil }
    return isModels == isStores || isStores && isFollowed
  }

  private func modelEntity(_ number: Int64, _ root: EntityLayout) -> EntityLayout? {
    guard let number = Int(exactly: number), root.numbers.contains(number) else { return nil }
    return layout.entity(numbered: number)
  }

  private func known(of root: EntityLayout) -> [Int64: EntityLayout] {
    var known: [Int64: EntityLayout] = [:]
    for entity in layout.entities where entity.rootName == root.name {
      for row in keyRows where layout.isName(row.name, of: entity) { known[row.number] = entity }
    }
    return known
  }
}

extension StoreLayout {
  /// Returns the number of a hierarchy's only concrete entity, if unique.
  package func soleNumber(ofRoot rootName: String) -> Int? {
    let concrete = entities.filter { $0.rootName == rootName && model.entities[$0.name]?.isAbstract == false }
    return concrete.count == 1 ? concrete.first?.number : nil
  }

  /// Returns whether a name is the entity's current or former one: `Z_PRIMARYKEY` keeps the former (format section
  /// 3.3).
  package func isName(_ name: String?, of entity: EntityLayout) -> Bool {
    if name == entity.name { return true }
    guard let name, self.entity(named: name) == nil else { return false }
    return model.entities[entity.name]?.renamingIdentifier == name
  }
}

extension StoreDrift {
  /// Returns whether a repair would need a guess, judged by the part read.
  func isBeyondRepair(_ outline: StoreOutline, _ layout: StoreLayout) -> Bool {
    let numbering = EntityNumbering(layout, outline.keyRows ?? [])
    let isFollowed = outline.tables.contains { $0.name == "ACHANGE" || $0.name.hasPrefix("ANSCK") }
    let taken = Set((outline.views + outline.indexes.map(\.name)).map(StoreOutline.key))
    func isStuck(_ table: String) -> Bool {
      guard let root = layout.table(named: table).flatMap({ layout.entity(named: $0.rootEntityName) }) else {
        return false
      }
      let key = StoreOutline.key(table)
      return numbering.isStuck(
        root, numbers: outline.entityNumbers[key] ?? [], hasOthers: outline.tablesWithoutNumbers.contains(key),
        isFollowed: isFollowed)
    }

    return differences.contains { difference in
      switch difference {
      case .missingTable(let table): taken.contains(StoreOutline.key(table.name))
      case .missingJoinTable(let table): taken.contains(StoreOutline.key(table.name))
      case .missingBookkeepingTable(let name, _): taken.contains(StoreOutline.key(name))
      case .missingColumn(let table, let column):
        column.role == .primaryKey
          || column.role == .entityNumber && hasRows(table, outline)
            && layout.table(named: table).flatMap { layout.soleNumber(ofRoot: $0.rootEntityName) } == nil
      case .otherEntityNumber(let entity, _): isStuck(entity.tableName)
      case .otherNumbersInRows(let table, _), .missingNumbersInRows(let table): isStuck(table)
      case .missingBookkeepingColumn, .otherBookkeepingTable, .missingJoinColumn, .missingIndex, .missingSpatialIndex,
        .missingTrigger, .missingKeyRow, .otherParentNumber, .otherEntityName, .lowKeyMaximum, .otherModelCached:
        false
      }
    }
  }

  private func hasRows(_ table: String, _ outline: StoreOutline) -> Bool {
    outline.highestKeys[StoreOutline.key(table)] != nil
  }
}
