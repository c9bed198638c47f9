import ArgumentParser
import Backup
import Foundation
import Lazaret
import ObjectStorage
import Platform
import SystemPackage

struct StorageOptions: ParsableArguments {
  // Plain text: an invalid address may contain a secret and must not be shown.
  @Option(
    help: ArgumentHelp(
      "Object storage with the backups of one store, instead of Backups/ in the home: s3://bucket/prefix. Its server and credentials are those of the environment and ~/.aws.",
      valueName: "address"))
  var place: String?

  /// - Throws: `s3-address`, `s3-settings`, `s3-credentials`.
  func chosen() throws -> ObjectStoragePlace? {
    guard let place else { return nil }
    let address = try CommandLineSlip.telling { try S3Address(place) }
    let environment = S3Environment { ProcessInfo.processInfo.environment[$0] }
    return ObjectStoragePlace(address, try environment.client(for: address))
  }
}

extension BackupPlace {
  /// The folder's path or the address, for JSON.
  var shownLocation: PlaceLocation { PlaceLocation(folder: (self as? FolderPlace).map { PathText($0.path) }, location) }

  var name: String { (self as? FolderPlace)?.path.lastComponent?.string ?? location }

  /// The store's path relative to the home, or the place's name.
  var words: String { printable(owner?.path?.text ?? name) }

  var movedWords: String? {
    owner?.movedFrom.map {
      "The store was at \(printable($0.text)) when its last backup was taken; its history goes on.\n"
    }
  }
}

extension ObjectStoragePlace {
  /// Describes the storage's retention of removed objects, if any.
  func keepingWords() throws -> String? { try keeping().words(at: Surroundings.machine.now()) }
}

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
