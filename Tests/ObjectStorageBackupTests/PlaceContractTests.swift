import Backup
import Platform
import StorageServers
import Testing

/// What every place of backups promises, whatever it is made of.
struct PlaceContractTests {
  private static let id = "b-2026-11-21-10-11-12"

  private func write(_ bytes: [UInt8], to name: String, in place: any BackupPlace) throws {
    let upload = try place.begin(name)
    try upload.append(bytes[...])
    try upload.synchronize()
    try upload.commit()
  }

  @Test(arguments: PlaceKind.present)
  func aFileIsThereWhenItIsWhole(kind: PlaceKind) throws {
    let made = try kind.make()
    let place = made.place()
    #expect(try place.list(.kept).isEmpty)
    let name = "\(Self.id).json"
    let upload = try place.begin(name)
    try upload.append(Array("0123".utf8)[...])
    try upload.append(Array("456789".utf8)[...])
    try upload.synchronize()
    #expect(try made.place().list(.kept).isEmpty)
    #expect(try !made.place().contains(name, in: .kept))
    try upload.commit()
    let other = made.place()
    #expect(try other.list(.kept) == [BackupObject(name: name, bytes: 10)])
    #expect(try other.contains(name, in: .kept))
    #expect(try !other.contains(name, in: .trash))
    #expect(try other.read(name, in: .kept, at: 0, length: 100) == Array("0123456789".utf8))
    #expect(try other.read(name, in: .kept, at: 3, length: 2) == Array("34".utf8))
    #expect(try other.read(name, in: .kept, at: 8, length: 9) == Array("89".utf8))
    #expect(try other.read(name, in: .kept, at: 10, length: 9) == [])
  }

  @Test(arguments: PlaceKind.present)
  func ofTwoFilesOfANameOneIsKept(kind: PlaceKind) throws {
    let made = try kind.make()
    let place = made.place()
    let name = "\(Self.id).json"
    try write([1], to: name, in: place)
    let error = #expect(throws: (any Error).self) { try write([2], to: name, in: place) }
    #expect(error.map { BackupError(any: $0).kind } == .nameTaken)
    #expect(try place.read(name, in: .kept, at: 0, length: 10) == [1])
    try place.replace("\(Self.id).proof.json", with: [3], in: .kept)
    try place.replace("\(Self.id).proof.json", with: [4, 5], in: .kept)
    #expect(try place.read("\(Self.id).proof.json", in: .kept, at: 0, length: 10) == [4, 5])
  }

  @Test(arguments: PlaceKind.present)
  func whatIsNotThereIsNotFound(kind: PlaceKind) throws {
    let made = try kind.make()
    let place = made.place()
    try write([1], to: "\(Self.id).json", in: place)
    for section in BackupSection.allCases {
      let error = #expect(throws: (any Error).self) {
        try place.read("\(Self.id).sqlite.gz", in: section, at: 0, length: 1)
      }
      #expect(error.map { BackupError(any: $0).code } == "file-not-found")
      try place.delete("\(Self.id).sqlite.gz", in: section)
    }
    #expect(throws: (any Error).self) { try place.move("\(Self.id).sqlite.gz", from: .kept, to: .trash) }
    for name in ["", "..", ".hidden", "a/b", "../x", "a b", "é"] {
      #expect(throws: BackupError.self) { try place.read(name, in: .kept, at: 0, length: 1) }
      #expect(throws: BackupError.self) { _ = try place.begin(name) }
    }
  }

  @Test(arguments: PlaceKind.present)
  func filesGoIntoTheTrashAndComeBack(kind: PlaceKind) throws {
    let made = try kind.make()
    let place = made.place()
    let name = "\(Self.id).json"
    try write([1, 2], to: name, in: place)
    try place.move(name, from: .kept, to: .trash)
    try place.replace("\(Self.id).dropped.json", with: [9], in: .trash)
    #expect(try place.list(.kept).isEmpty)
    #expect(try Set(place.list(.trash).map(\.name)) == [name, "\(Self.id).dropped.json"])
    #expect(try place.contains(name, in: .trash))
    #expect(try !place.contains(name, in: .kept))
    #expect(try place.read(name, in: .trash, at: 0, length: 9) == [1, 2])
    #expect(try place.read("\(Self.id).dropped.json", in: .trash, at: 0, length: 9) == [9])
    try place.delete("\(Self.id).dropped.json", in: .trash)
    try place.move(name, from: .trash, to: .kept)
    #expect(try place.list(.kept) == [BackupObject(name: name, bytes: 2)])
    #expect(try place.list(.trash).isEmpty)
    try place.move(name, from: .kept, to: .trash)
    try place.delete(name, in: .kept)
    #expect(try place.list(.trash).count == 1)
    try place.delete(name, in: .trash)
    #expect(try place.list(.trash).isEmpty)
    #expect(try place.list(.kept).isEmpty)
  }

  @Test(arguments: PlaceKind.present)
  func whatAKilledProcessLeftIsRemoved(kind: PlaceKind) throws {
    let made = try kind.make()
    let place = made.place()
    try write([7], to: "b-2026-11-20-10-11-12.json", in: place)
    let (data, head) = (try place.begin("\(Self.id).sqlite.gz"), try place.begin("\(Self.id).json"))
    // More than one part, where there are parts.
    try data.append([UInt8](repeating: 1, count: 9 << 20)[...])
    try head.append([2])
    try data.synchronize()
    try head.synchronize()
    try data.commit()
    // A process that is killed ends nothing that it has begun.
    _ = unsafe Unmanaged.passRetained(head as AnyObject)
    let large = try place.begin("\(Self.id).delta.gz")
    try large.append([UInt8](repeating: 1, count: 9 << 20)[...])
    _ = unsafe Unmanaged.passRetained(large as AnyObject)
    let next = made.place()
    #expect(try next.unfinished().contains("\(Self.id).json"))
    let lock = try next.lock()
    try next.removeUnfinished()
    withExtendedLifetime(lock) {}
    #expect(try next.list(.kept).map(\.name) == ["b-2026-11-20-10-11-12.json"])
    #expect(try next.unfinished().isEmpty)
    #expect(try !next.contains("\(Self.id).sqlite.gz", in: .kept))
  }

  @Test(arguments: PlaceKind.present)
  func whatIsGivenUpLeavesNothing(kind: PlaceKind) throws {
    let made = try kind.make()
    let place = made.place()
    var upload: (any BackupUpload)? = try place.begin("\(Self.id).sqlite.gz")
    try upload?.append([UInt8](repeating: 1, count: 9 << 20)[...])
    upload = nil
    #expect(try place.list(.kept).isEmpty)
    // Where answers are lost an upload may have begun of which nobody knows; the next backup gives it up.
    if kind == .memory, let bucket = made.holder as? MemoryBucket { #expect(bucket.openUploads == 0) }
  }

  @Test(arguments: PlaceKind.present)
  func theLockIsFreeAgainWhenItIsGone(kind: PlaceKind) throws {
    let made = try kind.make()
    for _ in 0..<3 {
      let lock = try made.place().lock()
      withExtendedLifetime(lock) {}
    }
    #expect(try made.place().list(.kept).isEmpty)
  }
}
