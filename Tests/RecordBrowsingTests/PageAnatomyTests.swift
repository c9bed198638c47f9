import Inspector
import Platform
import SQLiteFormat
import Salvage
import TestSupport
import Testing

@Suite("What each byte of a page is")
struct PageAnatomyTests {
  @Test("Every byte of every page of a store is one part, and every cell is where its region is")
  func whole() throws {
    let scene = try ShipStore(seed: 21, records: 120)
    let pages = try EvidencePages(scene.store, in: FileSystem())
    var cells = 0
    for number in 1...pages.pageCount {
      let content = try #require(try pages.page(number))
      let anatomy = PageAnatomy(content.bytes, number: number, geometry: pages.geometry, encoding: pages.encoding)
      #expect(anatomy.regions.first?.bytes.lowerBound == 0)
      #expect(anatomy.regions.last?.bytes.upperBound == pages.pageSize)
      for (one, next) in zip(anatomy.regions, anatomy.regions.dropFirst()) {
        #expect(one.bytes.upperBound == next.bytes.lowerBound)
      }
      for cell in anatomy.cells {
        let bytes = try #require(cell.bytes)
        #expect(anatomy.regions.contains { $0.part == .cell(cell.index) && $0.bytes == bytes })
      }
      cells += anatomy.cells.count
    }
    #expect(cells > 240)
  }

  @Test("No bytes are too odd to be looked at", arguments: [512, 1024, 4096, 65536])
  func odd(size: Int) {
    var generator = SeededGenerator(seed: UInt64(size))
    for round in 0..<200 {
      var bytes = (0..<size).map { _ in UInt8.random(in: 0...255, using: &generator) }
      // Half of them begin like a page of a tree.
      if round.isMultiple(of: 2) { bytes[0] = [2, 5, 10, 13][round / 2 % 4] }
      if round.isMultiple(of: 4) { bytes[3] = 0 }
      let geometry = PayloadGeometry(usableSize: size - (round % 3) * 8)
      let anatomy = PageAnatomy(bytes, number: UInt32(round % 3), geometry: geometry, encoding: .utf8)
      #expect(anatomy.regions.reduce(0) { $0 + $1.bytes.count } == size, "size \(size), round \(round)")
      #expect(anatomy.cells.count <= size / 2)
    }
  }
}
