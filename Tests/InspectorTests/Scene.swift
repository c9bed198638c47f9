import Foundation
import HTTPServer
import Inspector
import StoreFiles
import SystemPackage

/// A home with an inspector of it.
struct Scene {
  let home: FilePath
  let inspector: Inspector

  /// An inspector of a folder as it is.
  init(in home: FilePath, models: [InspectorModel] = []) throws {
    self.home = home
    var options = InspectorOptions(home: home, publicFolder: Self.publicFolder)
    options.models = models
    inspector = try Inspector(options, sessions: Sessions(cookieName: "lazaret"))
  }

  /// The folder with the page's own files, in the checkout.
  static var publicFolder: FilePath {
    var folder = FilePath(#filePath)
    for _ in 0..<3 { folder.removeLastComponent() }
    return folder.appending("Public")
  }
}
