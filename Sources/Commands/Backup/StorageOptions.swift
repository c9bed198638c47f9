import ArgumentParser
import Backup
import Foundation
import Lazaret
import ObjectStorage
import Platform
import SystemPackage

/// Object storage in which backups lie, in place of the home.
struct StorageOptions: ParsableArguments {
  // A text, and not an address, since what is wrong with it may be a secret that must not be shown.
  @Option(
    help: ArgumentHelp(
      "Object storage with the backups of one store, instead of Backups/ in the home: s3://bucket/prefix. Its server and credentials are those of the environment and ~/.aws.",
      valueName: "address"))
  var place: String?

  /// The place; nil where the home is meant.
  ///
  /// - Throws: `s3-address`, `s3-settings`, `s3-credentials`.
  func chosen() throws -> ObjectStoragePlace? {
    guard let place else { return nil }
    let address = try CommandLineSlip.telling { try S3Address(place) }
    let environment = S3Environment { ProcessInfo.processInfo.environment[$0] }
    return ObjectStoragePlace(address, try environment.client(for: address))
  }
}

extension BackupPlace {
  /// Where it is, as JSON has it: the path of a folder, or the address.
  var shownLocation: PlaceLocation { PlaceLocation(folder: (self as? FolderPlace).map { PathText($0.path) }, location) }

  /// The name of a folder, or the address.
  var name: String { (self as? FolderPlace)?.path.lastComponent?.string ?? location }

  /// The store of a place in words: its path from the home on where that is known, or the name of the place.
  var words: String { printable(owner?.path?.text ?? name) }

  /// That the store has moved since its last backup, on a line of its own; nil where it has not.
  var movedWords: String? {
    owner?.movedFrom.map {
      "The store was at \(printable($0.text)) when its last backup was taken; its history goes on.\n"
    }
  }
}

extension ObjectStoragePlace {
  /// That what is removed is not gone, as a sentence; nil where it is, or where that is not known.
  func keepingWords() throws -> String? { try keeping().words(at: Surroundings.machine.now()) }
}

/// Where a place is, as JSON has it: the path of a folder, or an address.
struct PlaceLocation: Encodable, Sendable {
  private let folder: PathText?
  private let address: String

  init(folder: PathText?, _ address: String) {
    self.folder = folder
    self.address = address
  }

  func encode(to encoder: any Encoder) throws {
    if let folder { return try folder.encode(to: encoder) }
    var container = encoder.singleValueContainer()
    try container.encode(address)
  }
}
