import ManagedObjectModel

/// Which entities the rows of a hierarchy's table are of, by their entity numbers.
///
/// Where `Z_PRIMARYKEY` and the model give an entity different numbers, the rows decide, as they do in a repair: if all their
/// numbers are those of one of the two, these hold. Where a table can hold records of one entity alone, the table says what
/// they are, whatever number they have.
package struct EntityNumbering: Sendable {
  private let layout: StoreLayout
  private let keyRows: [StoreOutline.KeyRow]

  /// The numbers of a layout, and those of the store's `Z_PRIMARYKEY`.
  package init(_ layout: StoreLayout, _ keyRows: [StoreOutline.KeyRow]) {
    self.layout = layout
    self.keyRows = keyRows
  }

  /// The rows of a hierarchy's table, counted by entity.
  package struct Share: Sendable, Hashable {
    /// The rows of entities, under their names; an entity that is neither here nor contested has none.
    package var rows: [String: Int] = [:]

    /// The entities whose rows cannot be told from each other's: the model and `Z_PRIMARYKEY` give them one number.
    package var contested: Set<String> = []

    /// The rows whose number is that of no entity of the hierarchy.
    package var ofNone = 0
  }

  /// Shares the rows of the table of a hierarchy among its entities.
  ///
  /// - Parameter counts: how many rows have each number; nil stands for what is no integer.
  package func share(of counts: [Int64?: Int], root: EntityLayout) -> Share {
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

  /// Whether a repair cannot give the rows of a hierarchy the model's numbers without guessing, or without changing what
  /// persistent history and mirroring say.
  ///
  /// - Parameters:
  ///   - numbers: the numbers that the rows have.
  ///   - hasOthers: whether rows have something that is no integer.
  ///   - isFollowed: whether tables of persistent history or mirroring name entities by number.
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

  /// The entity of a hierarchy that the model gives a number.
  private func modelEntity(_ number: Int64, _ root: EntityLayout) -> EntityLayout? {
    guard let number = Int(exactly: number), root.numbers.contains(number) else { return nil }
    return layout.entity(numbered: number)
  }

  /// The entities of a hierarchy under the numbers that `Z_PRIMARYKEY` gives them.
  private func known(of root: EntityLayout) -> [Int64: EntityLayout] {
    var known: [Int64: EntityLayout] = [:]
    for entity in layout.entities where entity.rootName == root.name {
      for row in keyRows where layout.isName(row.name, of: entity) { known[row.number] = entity }
    }
    return known
  }
}

extension StoreLayout {
  /// The number of the only entity whose records a hierarchy's table can hold; nil where there are several or none.
  package func soleNumber(ofRoot rootName: String) -> Int? {
    let concrete = entities.filter { $0.rootName == rootName && model.entities[$0.name]?.isAbstract == false }
    return concrete.count == 1 ? concrete.first?.number : nil
  }

  /// Whether a name in `Z_PRIMARYKEY` is an entity's, or the one it was renamed from: Core Data leaves that in its row
  /// (format section 3.3).
  package func isName(_ name: String?, of entity: EntityLayout) -> Bool {
    if name == entity.name { return true }
    guard let name, self.entity(named: name) == nil else { return false }
    return model.entities[entity.name]?.renamingIdentifier == name
  }
}

extension StoreDrift {
  /// Whether a repair refuses the store, as far as what was read of it tells: what is missing or wrong cannot be made good
  /// without guessing.
  ///
  /// - Parameters:
  ///   - outline: what the drift was told from.
  ///   - layout: that of the model which the store's metadata names.
  package func isBeyondRepair(_ outline: StoreOutline, _ layout: StoreLayout) -> Bool {
    let numbering = EntityNumbering(layout, outline.keyRows ?? [])
    let isFollowed = outline.tables.contains { $0.name == "ACHANGE" || $0.name.hasPrefix("ANSCK") }
    let taken = Set((outline.views + outline.indexes.map(\.name)).map(StoreOutline.key))
    /// Whether the records of a table cannot be given the model's numbers.
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
