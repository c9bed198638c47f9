extension Database {
  /// The row of a rowid, found by descending from the root; nil where it is not there or damage is in the way.
  public func row(_ rowid: Int64, root: UInt32) throws(FormatError) -> Row? {
    var number = root
    var depth = 0
    while depth < BTreeWalk.maximumDepth {
      guard let page = try bTreePage(number), page.kind.isTable else { return nil }
      // The first cell whose key is not below the rowid; an unreadable one counts as below.
      var low = 0
      var high = page.cellCount
      while low < high {
        let middle = (low + high) / 2
        if let cell = page.cell(at: middle), cell.rowid >= rowid {
          high = middle
        } else {
          low = middle + 1
        }
      }
      if page.kind.isLeaf {
        guard let cell = page.cell(at: low), cell.rowid == rowid else { return nil }
        var walk = BTreeWalk(gatheringFrom: self, root: root)
        let payload = try walk.payload(of: cell, on: page, limit: Cell.maximumPayloadLength)
        guard let record = Record(payload: payload, payloadLength: cell.payloadLength, encoding: encoding) else {
          return nil
        }
        return Row(rowid: rowid, record: record, page: page.number, cell: low)
      }
      guard let child = page.child(at: low), child > 1 else { return nil }
      number = child
      depth += 1
    }
    return nil
  }
}

extension Database {
  /// The row with the highest rowid, found by descending along the right edge; nil where the table is empty or damage is in
  /// the way.
  ///
  /// Of its record no more than `payloadLimit` bytes are read.
  public func lastRow(root: UInt32, payloadLimit: Int = Cell.maximumPayloadLength) throws(FormatError) -> Row? {
    var number = root
    for _ in 0..<BTreeWalk.maximumDepth {
      guard let page = try bTreePage(number), page.kind.isTable else { return nil }
      guard page.kind.isLeaf else {
        guard page.rightMostChild > 1 else { return nil }
        number = page.rightMostChild
        continue
      }
      guard page.cellCount > 0, let cell = page.cell(at: page.cellCount - 1) else { return nil }
      var walk = BTreeWalk(gatheringFrom: self, root: root)
      let payload = try walk.payload(of: cell, on: page, limit: payloadLimit)
      guard let record = Record(payload: payload, payloadLength: cell.payloadLength, encoding: encoding) else {
        return nil
      }
      return Row(rowid: cell.rowid, record: record, page: page.number, cell: page.cellCount - 1)
    }
    return nil
  }
}

extension Database {
  /// The first and the last entry of an index, found by descending along both edges; what is empty or behind damage is left
  /// out.
  ///
  /// Of each entry no more than `payloadLimit` bytes are read.
  public func indexEnds(root: UInt32, payloadLimit: Int = 512) throws(FormatError) -> [Record] {
    var ends: [Record] = []
    for isLast in [false, true] {
      if let record = try indexEnd(isLast, root: root, payloadLimit: payloadLimit) { ends.append(record) }
    }
    return ends
  }

  private func indexEnd(_ isLast: Bool, root: UInt32, payloadLimit: Int) throws(FormatError) -> Record? {
    var number = root
    for _ in 0..<BTreeWalk.maximumDepth {
      guard let page = try bTreePage(number), !page.kind.isTable else { return nil }
      guard page.kind.isLeaf else {
        guard let child = isLast ? page.rightMostChild : page.child(at: 0), child > 1 else { return nil }
        number = child
        continue
      }
      guard page.cellCount > 0, let cell = page.cell(at: isLast ? page.cellCount - 1 : 0) else { return nil }
      var walk = BTreeWalk(gatheringFrom: self, root: root)
      let payload = try walk.payload(of: cell, on: page, limit: payloadLimit)
      return Record(payload: payload, payloadLength: cell.payloadLength, encoding: encoding)
    }
    return nil
  }
}
